// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/api/state.h"
#include "trainer/base/unix_time.h"

namespace phalanx {

/// A logged value.
using FieldValue = std::variant<int64_t, double, std::string>;

/// What is logged of one step, or of one validation: the same to every sink.
struct Record {
  Phase phase = Phase::train;
  State state;
  /// In the order in which they are shown: "loss", "lr", "grad_norm", "tokens_per_second", ….
  std::vector<std::pair<std::string, FieldValue>> fields;
  double time = unix_time();  ///< When it was measured, in seconds since 1970.
};

/// What sinks are told of a run when it starts.
struct RunDescription {
  std::string exp_name;
  std::string exp_dir;               ///< The run's folder.
  std::string log_dir;               ///< Where sinks write; exists.
  std::optional<int64_t> max_steps;  ///< The last step's number, where it is known beforehand.
  bool validation_due = false;       ///< The step that it resumes from is validated first.
  std::string model;                 ///< Name of the model.
  int64_t parameters = 0;            ///< Its number of elements.
  std::vector<std::string> lines;    ///< The start screen, one line each.
};

}  // namespace phalanx
