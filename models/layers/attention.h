// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/interfaces/decoder_cache.h"

namespace phalanx {

/// What a place may see, and how scores become weights.
struct AttentionOptions {
  bool is_causal = false;  ///< No place sees a later one. Not together with a mask.
  /// Broadcast to [batch, heads, queries, keys]: of bool, true where a key may be seen; of numbers,
  /// to be added to the scores. Undefined: none.
  at::Tensor mask;
  double dropout = 0;  ///< Applied to the weights: a probability, 0 outside of training.
  /// The factor of the scores; nothing: one over the root of a head's width.
  std::optional<double> scale;
  /// Holds the places before: `key` and `value` are those of places behind them, and join them.
  std::optional<KeyValueCache> cache;
  /// Whether keys are one more with each call, for other reasons than `cache`: no kernel is taken
  /// that has to be planned for each shape.
  bool keys_grow = false;
};

/// [batch, length, heads * width] as heads: [batch, heads, length, width], a view.
at::Tensor split_heads(const at::Tensor& joined, int64_t heads);

/// Scaled dot-product attention (Vaswani et al. 2017), by the best kernel that LibTorch has for the
/// arguments. `query` is [batch, heads, queries, width]; `key` and `value` are [batch,
/// key/value heads, keys, width], where the number of heads is a multiple of that of the key/value
/// heads (Ainslie et al. 2023). The result is [batch, queries, heads * width].
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options);

}  // namespace phalanx
