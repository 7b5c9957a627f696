// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/api/state.h"
#include "trainer/mixins/last_metrics.h"
#include "trainer/mixins/loss_track.h"

namespace phalanx {

class TrainerBase;

/// What the logs of a process keep of a run for its end.
struct LoggedRun {
  State began;  ///< Where this process began.
  LossTrack training;
  LossTrack validation;
  LastMetrics metrics;
};

/// How a run has ended, where, with which losses, what it has left out, where its time went, the
/// task's sample, and what to do next. All ranks call it: the sample may need all.
std::string describe_end(TrainerBase& trainer, const LoggedRun& run);

}  // namespace phalanx
