// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/record.h"

namespace phalanx {

/// What a run is, for the sinks and for the screen at its start: model, parameters, units, groups,
/// data, length, and where things are written.
RunDescription describe_run(TrainerBase& trainer);

}  // namespace phalanx
