// SPDX-License-Identifier: Apache-2.0
#include "models/layers/attention.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

namespace phalanx {
namespace {

// True where the last `queries` of all places may see a key.
at::Tensor causal_mask(int64_t queries, const at::Tensor& keys) {
  const int64_t places = keys.size(2);
  return at::ones({queries, places}, keys.options().dtype(at::kBool)).tril(places - queries);
}

// Where keys grow by a token each time: LibTorch asks cuDNN first for attention in 16 bits, which
// makes a plan for each shape, some 45 ms on an H200.
class WithoutCudnnAttention {
 public:
  WithoutCudnnAttention() : was_enabled_(at::globalContext().userEnabledCuDNNSDP()) {
    at::globalContext().setSDPUseCuDNN(false);
  }
  WithoutCudnnAttention(const WithoutCudnnAttention&) = delete;
  WithoutCudnnAttention& operator=(const WithoutCudnnAttention&) = delete;
  ~WithoutCudnnAttention() { at::globalContext().setSDPUseCuDNN(was_enabled_); }

 private:
  bool was_enabled_;
};

}  // namespace

at::Tensor split_heads(const at::Tensor& joined, int64_t heads) {
  return joined.unflatten(-1, {heads, -1}).transpose(1, 2);
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options) {
  const KeyValueCache::Contents all =
      options.cache ? options.cache->append(key, value) : KeyValueCache::Contents{key, value};
  auto mask = options.mask.defined() ? std::optional(options.mask) : std::nullopt;
  bool is_causal = options.is_causal;
  if (is_causal && all.keys.size(2) > query.size(2)) {
    // LibTorch's flag means that the first query sees the first key alone.
    is_causal = false;
    if (query.size(2) > 1) mask = causal_mask(query.size(2), all.keys);
  }
  const bool is_grouped = key.size(1) != query.size(1);
  std::optional<WithoutCudnnAttention> without_cudnn;
  if (options.cache || options.keys_grow) without_cudnn.emplace();
  const at::Tensor mixed = at::scaled_dot_product_attention(
      query, all.keys, all.values, mask, options.dropout, is_causal, options.scale, is_grouped);
  return mixed.transpose(1, 2).flatten(2);
}

}  // namespace phalanx
