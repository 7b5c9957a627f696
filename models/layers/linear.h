// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "trainer/api/adaptable_module.h"

namespace phalanx {

/// How a linear layer begins, and how its weight is stored.
struct LinearOptions {
  bool has_bias = true;
  double initial_std = 0.02;  ///< The spread of the weight, which is normal; the bias is zero.
  /// The weight is [inputs, outputs], as in GPT-2's published weights (transformers' Conv1D).
  /// Requires has_bias.
  bool inputs_first = false;
  /// The weight is used outside of forward (HiddenStates::head), so an adapter would have no
  /// effect.
  bool is_head = false;
};

/// A linear layer, [..., inputs] to [..., outputs]: x Wᵀ + b (x W + b with inputs_first); an
/// adapter adds scale * dropout(x) Aᵀ Bᵀ.
class LinearImpl : public torch::nn::Module, public AdaptableModule {
 public:
  LinearImpl(int64_t inputs, int64_t outputs, const LinearOptions& options);

  at::Tensor forward(const at::Tensor& input);

  /// For HiddenStates::head: the loss multiplies by it in chunks.
  const at::Tensor& weight() const { return weight_; }

  void add_adapter(const AdapterOptions& options) override;
  bool has_adapter() const override { return adapter_.has_value(); }
  bool takes_adapter() const override { return !is_head_; }
  bool is_inputs_first() const override { return inputs_first_; }

 private:
  at::Tensor product(const at::Tensor& input) const;

  bool inputs_first_;
  bool is_head_;
  at::Tensor weight_;  // [outputs, inputs]; [inputs, outputs] with inputs_first.
  at::Tensor bias_;    // [outputs], or undefined.
  std::optional<AdapterOptions> adapter_;
  at::Tensor lora_a_;  // [rank, inputs]; with an adapter.
  at::Tensor lora_b_;  // [outputs, rank].
};
TORCH_MODULE(Linear);

}  // namespace phalanx
