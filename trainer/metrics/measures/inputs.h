// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "trainer/api/metric.h"

/// What measures share. None of it waits for a device.
namespace phalanx::metrics {

/// Throws std::invalid_argument unless so many tensors are fed; `what` names them: "predictions,
/// targets and perhaps weights".
void require_inputs(const MetricInputs& inputs, size_t least, size_t most, const char* what);

/// Its values in one dimension and float64.
at::Tensor flat(const at::Tensor& values);

/// Input `index`, in one dimension and float64: a number for each of `values`, and where these
/// are. Ones where it is not fed, as weights are then. Throws std::invalid_argument for another
/// number of them.
at::Tensor counterparts(const at::Tensor& values, const MetricInputs& inputs, size_t index);

/// The sum of values by their weights. A value without weight adds nothing, whatever it is.
at::Tensor weighed_sum(const at::Tensor& values, const at::Tensor& weights);

/// a / b; NaN where b is 0.
double quotient(double a, double b);

}  // namespace phalanx::metrics
