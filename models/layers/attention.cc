// SPDX-License-Identifier: Apache-2.0
#include "models/layers/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

namespace phalanx {

at::Tensor split_heads(const at::Tensor& joined, int64_t heads) {
  return joined.unflatten(-1, {heads, -1}).transpose(1, 2);
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options) {
  const auto mask = options.mask.defined() ? std::optional(options.mask) : std::nullopt;
  const bool is_grouped = key.size(1) != query.size(1);
  const at::Tensor mixed = at::scaled_dot_product_attention(
      query, key, value, mask, options.dropout, options.is_causal, options.scale, is_grouped);
  return mixed.transpose(1, 2).flatten(2);
}

}  // namespace phalanx
