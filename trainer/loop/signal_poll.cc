// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/signal_poll.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <span>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// Between two exchanges, which take a ten-thousandth of a second each; a person does not notice it.
constexpr std::chrono::nanoseconds kPause = std::chrono::milliseconds(50);

}  // namespace

void SignalPoll::look() {
  if (ranks_.is_single_rank()) return signals_.take_own();
  if (until_exchange_ == 0) exchange();
  --until_exchange_;
}

void SignalPoll::exchange() {
  const Clock::time_point now = Clock::now();
  const at::Tensor message = tensors::empty({SignalAgreement::kSlots + 1}, at::kLong);
  const std::span<int64_t, SignalAgreement::kSlots + 1> values(message.mutable_data_ptr<int64_t>(),
                                                               SignalAgreement::kSlots + 1);
  const auto slots = values.first<SignalAgreement::kSlots>();
  const SignalAgreement::Sent sent = signals_.put(slots);
  int64_t& nanoseconds = values.back();  // of a micro-batch
  nanoseconds =
      batches_ == 0 ? 0 : std::chrono::nanoseconds(now - exchanged_at_).count() / batches_;
  ranks_.all_reduce(message);
  signals_.take(slots, sent);
  // By the sum over the ranks, so that all come to the same; slowly, as micro-batches differ.
  const int64_t mean = std::max<int64_t>(nanoseconds / ranks_.world_size(), 1);
  batches_ = batches_ == 0 ? 1 : std::clamp<int64_t>(kPause.count() / mean, 1, 2 * batches_);
  until_exchange_ = batches_;
  exchanged_at_ = Clock::now();
}

}  // namespace phalanx
