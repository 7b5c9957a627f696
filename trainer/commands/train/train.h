// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/parallel/init_from_env.h"
#include "trainer/run/run.h"

namespace phalanx {

/// What every rank of a training does: builds the trainer and trains. Returns 0, or 128 + the
/// signal that has ended it early.
int train(const World& world, Run& run);

}  // namespace phalanx
