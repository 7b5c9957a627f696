// SPDX-License-Identifier: Apache-2.0
#include "tests/tensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

namespace phalanx::tensors {

at::Tensor ones(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::ones(sizes, options);
}

at::Tensor full(at::IntArrayRef sizes, const at::Scalar& value, const at::TensorOptions& options) {
  return at::full(sizes, value, options);
}

at::Tensor arange(const at::Scalar& end, const at::TensorOptions& options) {
  return at::arange(end, options);
}

at::Tensor arange(const at::Scalar& begin, const at::Scalar& end,
                  const at::TensorOptions& options) {
  return at::arange(begin, end, options);
}

at::Tensor rand(at::IntArrayRef sizes) { return at::rand(sizes); }

at::Tensor randn(at::IntArrayRef sizes) { return at::randn(sizes); }

at::Tensor cat(at::TensorList tensors) { return at::cat(tensors); }

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight) {
  return at::linear(input, weight);
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits, targets);
}

}  // namespace phalanx::tensors
