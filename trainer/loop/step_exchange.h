// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace phalanx {

class Ranks;

/// What all ranks tell each other as a step begins: how much each has for it, and which signals
/// came. Ranks get a signal at different moments; what they do about it, they do in the same step.
class StepExchange {
 public:
  /// Of a step: one rank's, or the sums over all, by which its losses are weighed.
  struct Counts {
    int64_t samples = 0;
    int64_t tokens = 0;
  };

  /// Sums the counts over all ranks, and makes a signal that any of them has got everybody's.
  Counts exchange(const Ranks& ranks, Counts mine);

  /// Whether the run is to stop by a signal that all know of.
  bool stops(const Ranks& ranks) const;

  /// Whether a checkpoint was asked for; once for each request.
  bool take_save_request();

 private:
  using Clock = std::chrono::steady_clock;

  bool stop_agreed_ = false;
  bool save_pending_ = false;
  Clock::time_point save_agreed_at_;  ///< When all ranks knew of the last request.
};

}  // namespace phalanx
