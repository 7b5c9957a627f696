// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/signal_agreement.h"

#include <algorithm>
#include <utility>

#include "trainer/loop/save_signal.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// A signal that is sent to all ranks comes to each in this time, if in different steps. It is
// counted from the signal on, not from when all know of it, which a long step puts off: a second
// one to another rank is a request of its own.
constexpr milliseconds kOneRequest{1500};

constexpr std::size_t kSave = 0;
constexpr std::size_t kSaveAge = 1;  // in milliseconds, summed over the ranks that ask
constexpr std::size_t kStops = 2;

}  // namespace

// A second signal to the rank that began a request is a request of its own, however soon it comes.
std::optional<SignalAgreement::Clock::duration> SignalAgreement::age_of_request(
    Clock::time_point now) {
  const auto asked_at = SaveSignal::take();
  if (!asked_at) return std::nullopt;
  const bool answered = *asked_at <= same_request_until_;
  same_request_until_ = Clock::time_point::min();
  if (answered) return std::nullopt;
  save_asked_ = true;
  return now - *asked_at;
}

SignalAgreement::Sent SignalAgreement::put(std::span<int64_t, kSlots> slots) {
  const Clock::time_point now = Clock::now();
  const auto age = age_of_request(now);
  slots[kSave] = age ? 1 : 0;
  slots[kSaveAge] = age ? std::chrono::duration_cast<milliseconds>(*age).count() : 0;
  for (std::size_t i = 0; i < StopSignal::kSignals.size(); ++i) {
    slots[kStops + i] = StopSignal::received() == StopSignal::kSignals[i] ? 1 : 0;
  }
  return {.saves_agreed = saves_agreed_, .time = now};
}

void SignalAgreement::take(std::span<const int64_t, kSlots> sums, Sent sent) {
  // A save that was agreed on while this message was under way has answered its request too.
  if (sums[kSave] > 0 && sent.saves_agreed == saves_agreed_) {
    save_pending_ = true;
    ++saves_agreed_;
    const milliseconds age(sums[kSaveAge] / sums[kSave]);
    // What came while this message was under way is of the same request, however late it was sent.
    if (!std::exchange(save_asked_, false)) {
      same_request_until_ = std::max(sent.time - age + kOneRequest, Clock::now());
    }
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
