// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/units.h"

namespace phalanx::pipeline {

/// A parameter of the model, and the stages that hold it, in ascending order.
struct StagedParameter {
  std::string name;
  at::Tensor tensor;  ///< The module's.
  std::vector<int64_t> stages;
};

/// A model's units in their order, divided over stages.
struct Stages {
  int64_t count = 0;
  std::vector<NamedHooked> units;
  std::vector<StagedParameter> parameters;

  /// The first unit of a stage; that of stage `count` is one past the last.
  int64_t first_unit(int64_t stage) const {
    return stage * static_cast<int64_t>(units.size()) / count;
  }
  int64_t stage_of(int64_t unit) const;
};

/// Divides a model's units, without those within others, over stages: equal numbers, later stages
/// have one more where they do not come out even. What lies outside the units is held by the first
/// stage and by the last one, so that a head may be tied to an embedding. Throws
/// std::invalid_argument for more stages than units, and for a parameter that a unit shares with
/// another stage.
Stages divide(torch::nn::Module& module, int64_t count);

}  // namespace phalanx::pipeline
