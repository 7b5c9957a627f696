// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/tensors/tensors.h"

/// More of what trainer/tensors/tensors.h has, for tests: the operators that are no methods of
/// Tensor, compiled once. A tensor of given values is at::tensor's, whose header is light.
namespace phalanx::tensors {

/// As at::ones.
at::Tensor ones(at::IntArrayRef sizes, const at::TensorOptions& options = {});

/// As at::full, with the dtype of `value` unless `options` has one.
at::Tensor full(at::IntArrayRef sizes, const at::Scalar& value,
                const at::TensorOptions& options = {});

/// As at::arange, with the dtype of the bounds unless `options` has one.
at::Tensor arange(const at::Scalar& end, const at::TensorOptions& options = {});
at::Tensor arange(const at::Scalar& begin, const at::Scalar& end,
                  const at::TensorOptions& options = {});

/// As at::rand and at::randn: from the default generator.
at::Tensor rand(at::IntArrayRef sizes);
at::Tensor randn(at::IntArrayRef sizes);

/// As at::cat, along the first dimension.
at::Tensor cat(at::TensorList tensors);

/// As at::linear, without a bias.
at::Tensor linear(const at::Tensor& input, const at::Tensor& weight);

/// As at::cross_entropy_loss: the mean over rows of `logits` [rows, classes] and `targets` [rows].
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace phalanx::tensors
