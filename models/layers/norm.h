// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace phalanx {

/// Layer normalisation over the last dimension (Ba et al. 2016).
class LayerNormImpl : public torch::nn::Module {
 public:
  /// `epsilon` is added to the variance.
  LayerNormImpl(int64_t width, double epsilon);

  at::Tensor forward(const at::Tensor& input);

 private:
  at::Tensor weight_;  // [width], of ones.
  at::Tensor bias_;    // [width], of zeros.
  double epsilon_;
};
TORCH_MODULE(LayerNorm);

/// Normalisation by the root of the mean square over the last dimension, without a bias (Zhang and
/// Sennrich 2019). Numbers of 16 bits are squared and summed in float32.
class RmsNormImpl : public torch::nn::Module {
 public:
  /// `epsilon` is added to the mean square; the weight begins with `initial`.
  RmsNormImpl(int64_t width, double epsilon, double initial = 1);

  at::Tensor forward(const at::Tensor& input);

 private:
  at::Tensor weight_;  // [width].
  double epsilon_;
};
TORCH_MODULE(RmsNorm);

}  // namespace phalanx
