// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "trainer/checkpoint/load/load.h"

namespace phalanx {

/// The part of a checkpoint with the averages of its model's weights (the section `averages`).
inline constexpr std::string_view kAveragesPart = "averages";

/// The same checkpoint with the averages as its model: whoever reads the model gets them, and what
/// has no average as it is. Throws UserError where the checkpoint has none yet.
Checkpoint with_averages(Checkpoint checkpoint);

/// Says to who uses the weights of a checkpoint that it also has their average, whether the run's
/// validations measured that, and how to use it; empty where none were taken.
std::string note_of_averages(const Checkpoint& checkpoint);

}  // namespace phalanx
