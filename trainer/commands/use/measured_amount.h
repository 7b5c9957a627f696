// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/loop/trainer_base.h"
#include "trainer/loop/trainer_setup.h"

namespace phalanx {

/// How much of some validation data is measured.
struct MeasuredAmount {
  int64_t samples = 0;      ///< That are measured, on all ranks.
  int64_t all = 0;          ///< That there are.
  int64_t max_batches = 0;  ///< What bounds the samples, if they are fewer than all.
};

/// "evaluating 8 of 700 samples (validation.max_batches=2; null takes all) of a.txt", or
/// "evaluating all 700 samples of a.txt".
std::string measured_line(const MeasuredAmount& amount, std::string_view of);

/// What an evaluation says before it measures what `trainer` has open: a line for each set of data
/// that is bounded, and one for what is held back of the training data. `file` names the file that
/// is open in place of the config's data; empty: none.
std::vector<std::string> measured_lines(const TrainerBase& trainer, const ValidationAmount& amount,
                                        std::string_view file);

}  // namespace phalanx
