// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/state.h"
#include "trainer/step/batch_transport.h"
#include "trainer/step/pass_errors.h"
#include "trainer/step/step_parts.h"
#include "trainer/step/time_split.h"

namespace phalanx {

/// What all passes of a trainer share, in training, validation and prediction: it outlives them.
struct PassContext {
  StepParts& parts;
  State& state;
  TimeSplit& time;
  const BatchTransport& transport;
  const PassErrors& errors;
};

}  // namespace phalanx
