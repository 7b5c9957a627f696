// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/loop/signal_agreement.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What all ranks tell each other of a step before it begins: how much each has for it, and which
/// signals came. It travels while the step before computes. Ranks get a signal at different
/// moments; what they do about it, they do in the same step.
class StepExchange {
 public:
  /// A step's counts on one rank, or their sums over all, by which its losses are weighed.
  struct Counts {
    int64_t samples = 0;
    int64_t tokens = 0;
    int64_t broken = 0;    ///< Samples that are left out because they cannot be read.
    int64_t failures = 0;  ///< Ranks that have no data for it, by an error.
  };

  /// Sends this rank's counts and the signals that it has got so far. Every rank calls it.
  void start(const Ranks& ranks, Counts mine);

  /// The sums over all ranks of what was sent last; a signal that any of them had got by then is
  /// now everybody's. Follows each `start`. Throws CommunicationError.
  Counts finish();

  /// What all know of signals: by this exchange, and by those who ask in between (SignalPoll).
  SignalAgreement& signals() { return signals_; }

  /// Whether the run is to stop by a signal that all know of.
  bool stops(const Ranks& ranks) const { return signals_.stops(ranks); }

  /// Whether a checkpoint was asked for; once for each request.
  bool take_save_request() { return signals_.take_save_request(); }

 private:
  at::Tensor values_;  ///< Under way, on several ranks.
  Pending pending_;
  Counts alone_;  ///< What a world of one rank has.
  SignalAgreement signals_;
  SignalAgreement::Sent sent_;
};

}  // namespace phalanx
