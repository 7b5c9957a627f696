// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "models/interfaces/decoder_cache.h"
#include "models/layers/norm.h"
#include "models/t5/config.h"
#include "models/t5/layers.h"
#include "trainer/api/unit.h"

namespace phalanx::t5 {

/// What a block of the decoder has computed for the tokens before.
struct BlockCache {
  KeyValueCache self_attention;
  KeyValueCache cross_attention;  ///< Keys and values of what was encoded.

  std::tuple<> tensors() { return {}; }
};

/// What T5 repeats: attention within the sequence, in the decoder attention to what was encoded,
/// and the feed-forward layer.
class T5BlockImpl : public torch::nn::Module, public Unit {
 public:
  /// The first block of each side owns the table of relative positions.
  T5BlockImpl(const Config& config, Side side, bool owns_bias);

  /// Returns the new states and the bias of the self-attention's scores, for the next block: units
  /// pass it on as a value, since another unit's table may be sharded. `states` are [batch, length,
  /// d_model]; `bias` is undefined in the first block. `mask` is bool [batch, 1, 1, input length],
  /// false at padding of the inputs, or undefined. `encoded` [batch, input length, d_model] is the
  /// encoder's output, in the decoder only, as is `cache`.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& states, const at::Tensor& bias,
                                            const at::Tensor& mask, const at::Tensor& encoded,
                                            const std::optional<BlockCache>& cache);

 private:
  SelfAttentionLayer self_attention_;    // layer.0.
  CrossAttentionLayer cross_attention_;  // layer.1, in the decoder only.
  FeedForwardLayer feed_forward_;        // The last layer.
};
UNIT(T5Block);

/// The encoder or the decoder: its blocks and the norm behind them.
class StackImpl : public torch::nn::Module {
 public:
  StackImpl(const Config& config, Side side);

  /// `embedded` is [batch, length, d_model], and so is the result; the rest as in T5Block.
  at::Tensor forward(const at::Tensor& embedded, const at::Tensor& mask, const at::Tensor& encoded,
                     DecoderCache* cache);

 private:
  double dropout_;
  std::vector<T5Block> blocks_;
  RmsNorm final_layer_norm_;
};
TORCH_MODULE(Stack);

}  // namespace phalanx::t5
