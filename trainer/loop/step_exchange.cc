// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/step_exchange.h"

#include <array>
#include <span>
#include <utility>

#include "trainer/base/stop_signal.h"
#include "trainer/loop/save_signal.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// Signals to save that come to the ranks within this time are one: one that is sent to all of them
// may come in different steps.
constexpr std::chrono::seconds kOneRequest{2};

// What is summed over the ranks; a flag for each signal to stop follows.
enum Slot : std::size_t { kSamples, kTokens, kBroken, kFailures, kSave, kStops };

constexpr std::size_t kSlots = kStops + StopSignal::kSignals.size();

}  // namespace

void StepExchange::start(const Ranks& ranks, Counts mine) {
  if (ranks.is_single_rank()) {
    alone_ = mine;
    return;
  }
  const auto save_asked_at = SaveSignal::take();
  values_ = tensors::empty({kSlots}, at::kLong);
  const std::span values(values_.mutable_data_ptr<int64_t>(), kSlots);
  values[kSamples] = mine.samples;
  values[kTokens] = mine.tokens;
  values[kBroken] = mine.broken;
  values[kFailures] = mine.failures;
  values[kSave] = save_asked_at && *save_asked_at - save_agreed_at_ > kOneRequest ? 1 : 0;
  for (std::size_t i = 0; i < StopSignal::kSignals.size(); ++i) {
    values[kStops + i] = StopSignal::received() == StopSignal::kSignals[i] ? 1 : 0;
  }
  pending_ = ranks.start_all_reduce(values_);
}

StepExchange::Counts StepExchange::finish() {
  if (!values_.defined()) {
    if (SaveSignal::take()) save_pending_ = true;
    return alone_;
  }
  pending_.wait();
  const std::span sums(values_.const_data_ptr<int64_t>(), kSlots);
  if (sums[kSave] > 0) {
    save_pending_ = true;
    save_agreed_at_ = Clock::now();
  }
  for (std::size_t i = 0; i < StopSignal::kSignals.size(); ++i) {
    if (sums[kStops + i] == 0) continue;
    stop_agreed_ = true;
    StopSignal::adopt(StopSignal::kSignals[i]);
  }
  return {.samples = sums[kSamples],
          .tokens = sums[kTokens],
          .broken = sums[kBroken],
          .failures = sums[kFailures]};
}

bool StepExchange::stops(const Ranks& ranks) const {
  return ranks.is_single_rank() ? StopSignal::received() != 0 : stop_agreed_;
}

bool StepExchange::take_save_request() { return std::exchange(save_pending_, false); }

}  // namespace phalanx
