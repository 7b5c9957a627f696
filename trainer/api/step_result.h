// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/api/named_values.h"

namespace phalanx {

/// A value that a task logs of a step: the sum of value times weight, and of the weights.
struct LoggedValue {
  std::string name;
  at::Tensor sum;
  double weight = 0;
};

/// What one of several optimizers has done in a step, at its last update of it.
struct OptimizerResult {
  std::string name;                     ///< As in the config's `optimizers`.
  double lr = 0;                        ///< Its learning rate.
  std::optional<at::Tensor> grad_norm;  ///< As StepResult's.
};

/// What one optimizer step was. Losses stay tensors until somebody reads them, so that a step that
/// nobody logs costs no stall.
struct StepResult {
  std::vector<std::pair<std::string, at::Tensor>> loss_parts;  ///< Means over the step's tokens.
  std::vector<LoggedValue> values;      ///< What the task has logged in its own step, on this rank.
  std::optional<at::Tensor> grad_norm;  ///< Before clipping; where clipping or a mixin asked.
  double lr = 0;                        ///< The learning rate of this step.
  /// Of several optimizers, those that have moved, in the order of their first update; `grad_norm`
  /// and `lr` above are those of a run with one.
  std::vector<OptimizerResult> optimizers;
  int64_t samples = 0;      ///< Samples of this step, over all ranks.
  int64_t tokens = 0;       ///< Tokens of this step, over all ranks.
  double step_seconds = 0;  ///< Wall time from fetching the data to the update's end.
  double data_seconds = 0;  ///< The part of it spent waiting for data: mostly the next step's.
  std::vector<BrokenSample> broken;  ///< Left out of this step on this rank.
  bool is_skipped = false;           ///< By the task or a guard: nothing has moved.
  std::string guarded_by;            ///< Why a guard has skipped it; empty: none has.
  bool save_requested = false;       ///< A rank was asked for a checkpoint by a signal.
  bool ends_epoch = false;           ///< The last step of its epoch.
  bool ends_training = false;        ///< A limit of the run is reached with this step.

  /// The loss, the sum of its parts, and after it the parts if there are several.
  NamedValues losses() const;
};

}  // namespace phalanx
