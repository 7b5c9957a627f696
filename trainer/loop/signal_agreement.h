// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "trainer/base/stop_signal.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What all ranks know of signals to stop and to save. Ranks get a signal at different moments, so
/// each puts what it has got into a message that is summed over all of them: what any had got is
/// then everybody's, at the same place of the loop. In a world of one no message is needed.
class SignalAgreement {
 public:
  /// The part of a message that is for signals: one to save and how old it is, then those to stop.
  static constexpr std::size_t kSlots = 2 + StopSignal::kSignals.size();

  /// A message that is under way.
  struct Sent {
    int64_t saves_agreed = 0;  ///< Before it was sent.
    std::chrono::steady_clock::time_point time = {};
  };

  /// Writes what this rank has got into `slots` of a message that is about to be sent.
  Sent put(std::span<int64_t, kSlots> slots);
  /// Takes over the sums of that message.
  void take(std::span<const int64_t, kSlots> sums, Sent sent);

  /// Takes this rank's own request to save: of a world of one.
  void take_own();

  /// Whether the run is to stop by a signal that all know of.
  bool stops(const Ranks& ranks) const;
  /// Whether a checkpoint was asked for; once for each request.
  bool take_save_request();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<Clock::duration> age_of_request(Clock::time_point now);

  bool stop_agreed_ = false;
  bool save_pending_ = false;
  int64_t saves_agreed_ = 0;
  bool save_asked_ = false;  ///< By a signal to this rank that no agreement has answered yet.
  /// Until then a signal to this rank is the one that another rank got, and all have agreed on.
  Clock::time_point same_request_until_ = Clock::time_point::min();
};

}  // namespace phalanx
