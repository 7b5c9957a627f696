// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "trainer/loop/signal_agreement.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Has the ranks agree on signals between the micro-batches of a validation. One rank just looks;
/// several exchange a small message, at once where a micro-batch takes long, and between short ones
/// only now and then, at the same ones on all ranks: that costs nothing that could be measured.
class SignalPoll {
 public:
  /// Both must outlive it.
  SignalPoll(const Ranks& ranks, SignalAgreement& signals) : ranks_(ranks), signals_(signals) {}

  /// Between two micro-batches, and before the first one. Every rank calls it; `signals` has then
  /// what all know. Throws CommunicationError.
  void look();

 private:
  using Clock = std::chrono::steady_clock;

  void exchange();

  const Ranks& ranks_;
  SignalAgreement& signals_;
  int64_t batches_ = 0;         ///< From one exchange to the next; 0: before the first one.
  int64_t until_exchange_ = 0;  ///< Micro-batches.
  Clock::time_point exchanged_at_;
};

}  // namespace phalanx
