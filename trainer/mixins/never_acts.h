// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/tree/forward.h"

namespace phalanx {

class TrainerBase;

/// What is known of a run before its first step.
struct RunLength {
  int64_t steps = 0;            ///< Of the whole run; a limit in seconds may end it earlier.
  int64_t steps_per_epoch = 1;  ///< Of a whole epoch.
  bool is_new = true;           ///< It is not resumed.
  bool can_validate = true;     ///< It has validation data.
  bool has_ranks = false;       ///< There are several.
};

/// A line for each field that the user has set and that cannot act in a run of this length, with
/// file and line, the numbers and what to change. `resolved` is the run's config. Says nothing of
/// defaults.
std::vector<std::string> never_acting(const config::Node& resolved, const RunLength& run);

/// The same of a trainer's run; empty where it is finished, or its length is not known in steps.
std::vector<std::string> never_acting(const TrainerBase& trainer);

/// The fields that are set and do nothing without validations (checkpoint.keep_best,
/// early_stopping.metric, the metric of a schedule), by their dotted paths.
std::vector<std::string> fields_in_need_of_validation(const config::Node& resolved);

/// " (my.yaml:3)": where the user has set the first of these fields that is set; empty where none
/// is.
std::string place_of(const config::Node& resolved, const std::vector<std::string>& paths);

}  // namespace phalanx
