// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/signal_agreement.h"

#include <utility>

#include "trainer/loop/save_signal.h"

namespace phalanx {
namespace {

// Signals to save that come to the ranks within this time are one: one that is sent to all of them
// may come in different steps.
constexpr std::chrono::seconds kOneRequest{2};

constexpr std::size_t kSave = 0;
constexpr std::size_t kStops = 1;

}  // namespace

SignalAgreement::Sent SignalAgreement::put(std::span<int64_t, kSlots> slots) {
  const auto save_asked_at = SaveSignal::take();
  slots[kSave] = save_asked_at && *save_asked_at - save_agreed_at_ > kOneRequest ? 1 : 0;
  for (std::size_t i = 0; i < StopSignal::kSignals.size(); ++i) {
    slots[kStops + i] = StopSignal::received() == StopSignal::kSignals[i] ? 1 : 0;
  }
  return {.saves_agreed = saves_agreed_};
}

void SignalAgreement::take(std::span<const int64_t, kSlots> sums, Sent sent) {
  // A save that was agreed on while this message was under way has answered its request too.
  if (sums[kSave] > 0 && sent.saves_agreed == saves_agreed_) {
    save_pending_ = true;
    ++saves_agreed_;
    save_agreed_at_ = Clock::now();
  }
  for (std::size_t i = 0; i < StopSignal::kSignals.size(); ++i) {
    if (sums[kStops + i] == 0) continue;
    stop_agreed_ = true;
    StopSignal::adopt(StopSignal::kSignals[i]);
  }
}

void SignalAgreement::take_own() {
  if (SaveSignal::take()) save_pending_ = true;
}

bool SignalAgreement::stops(const Ranks& ranks) const {
  return ranks.is_single_rank() ? StopSignal::received() != 0 : stop_agreed_;
}

bool SignalAgreement::take_save_request() { return std::exchange(save_pending_, false); }

}  // namespace phalanx
