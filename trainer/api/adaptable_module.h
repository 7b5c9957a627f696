// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// A low-rank adapter (LoRA, Hu et al. 2021): beside its own product a layer gives
/// scale * B A dropout(x).
struct AdapterOptions {
  int64_t rank = 8;
  double scale = 1;
  double dropout = 0;  ///< Applied to what A is given: a probability, 0 outside of training.
};

/// A module with a weight beside which an adapter can be trained. A layer's author derives from it,
/// beside torch::nn::Module.
class AdaptableModule {
 public:
  virtual ~AdaptableModule() = default;

  /// Registers the parameters `lora_A.weight` [rank, inputs], uniform within one over the root of
  /// the inputs, and `lora_B.weight` [outputs, rank], zeros, as peft does. Called once at most.
  virtual void add_adapter(const AdapterOptions& options) = 0;
  virtual bool has_adapter() const = 0;

  /// Whether an adapter would be computed wherever the weight is used.
  virtual bool takes_adapter() const = 0;
  /// Whether the weight is [inputs, outputs] (peft's fan_in_fan_out).
  virtual bool is_inputs_first() const = 0;
};

}  // namespace phalanx
