// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

/// Factories of tensors, compiled once. Every header of operators (ATen/ops/empty.h) includes
/// ATen's context and device guards, which adds three seconds to the compilation of a source;
/// ATen/TensorOperators.h adds four and a half. Sources that compute little call these functions
/// and Tensor's own methods.
namespace phalanx::tensors {

/// As at::empty: memory that is not initialised.
at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options = {});

/// As at::zeros.
at::Tensor zeros(at::IntArrayRef sizes, const at::TensorOptions& options = {});

}  // namespace phalanx::tensors
