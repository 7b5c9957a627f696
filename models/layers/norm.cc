// SPDX-License-Identifier: Apache-2.0
#include "models/layers/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/zeros.h>

namespace phalanx {

LayerNormImpl::LayerNormImpl(int64_t width, double epsilon)
    : weight_(register_parameter("weight", at::ones({width}))),
      bias_(register_parameter("bias", at::zeros({width}))),
      epsilon_(epsilon) {}

at::Tensor LayerNormImpl::forward(const at::Tensor& input) {
  return at::layer_norm(input, {input.size(-1)}, weight_, bias_, epsilon_);
}

RmsNormImpl::RmsNormImpl(int64_t width, double epsilon, double initial)
    : weight_(register_parameter("weight", at::empty({width}).fill_(initial))), epsilon_(epsilon) {}

at::Tensor RmsNormImpl::forward(const at::Tensor& input) {
  return at::rms_norm(input, {input.size(-1)}, weight_, epsilon_);
}

}  // namespace phalanx
