// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What a way to train gives.
struct Trained {
  double rate = 0;  ///< Steps a second.
  double loss = 0;  ///< Of the last step.
};

/// Two stages of layers, by micro-batches. All ranks call it.
Trained train_by_stages(const Ranks& ranks, int64_t steps);

/// A table on the last rank, looked up by the first. All ranks call it.
Trained train_with_remote_table(const Ranks& ranks, int64_t steps);

}  // namespace phalanx
