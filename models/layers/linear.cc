// SPDX-License-Identifier: Apache-2.0
#include "models/layers/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>
#include <memory>
#include <utility>

namespace phalanx {
namespace {

// Matrix A or B of an adapter. A module, so that its parameter is called lora_A.weight, as in peft.
class AdapterMatrix : public torch::nn::Module {
 public:
  explicit AdapterMatrix(at::Tensor weight) { register_parameter("weight", std::move(weight)); }
};

}  // namespace

LinearImpl::LinearImpl(int64_t inputs, int64_t outputs, const LinearOptions& options)
    : inputs_first_(options.inputs_first), is_head_(options.is_head) {
  const std::array sizes{inputs_first_ ? inputs : outputs, inputs_first_ ? outputs : inputs};
  weight_ = register_parameter("weight", at::empty(sizes).normal_(0, options.initial_std));
  if (options.has_bias) bias_ = register_parameter("bias", at::zeros({outputs}));
}

void LinearImpl::add_adapter(const AdapterOptions& options) {
  const int64_t inputs = weight_.size(inputs_first_ ? 0 : 1);
  const int64_t outputs = weight_.size(inputs_first_ ? 1 : 0);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));  // kaiming_uniform_, a = sqrt(5)
  lora_a_ = at::empty({options.rank, inputs}).uniform_(-bound, bound);
  lora_b_ = at::zeros({outputs, options.rank});
  register_module("lora_A", std::make_shared<AdapterMatrix>(lora_a_));
  register_module("lora_B", std::make_shared<AdapterMatrix>(lora_b_));
  adapter_ = options;
}

at::Tensor LinearImpl::forward(const at::Tensor& input) {
  const at::Tensor own = product(input);
  if (!adapter_) return own;
  const at::Tensor reduced =
      at::linear(at::dropout(input, adapter_->dropout, is_training()), lora_a_);
  return own + at::linear(reduced, lora_b_) * adapter_->scale;
}

at::Tensor LinearImpl::product(const at::Tensor& input) const {
  if (!inputs_first_) return at::linear(input, weight_, bias_);
  c10::DimVector sizes(input.sizes());
  const at::Tensor rows = input.reshape({-1, sizes.back()});
  const at::Tensor product = at::addmm(bias_, rows, weight_);
  sizes.back() = product.size(1);
  return product.view(sizes);
}

}  // namespace phalanx
