// SPDX-License-Identifier: Apache-2.0
#include "models/layers/decoder_cache.h"

#include "models/layers/document_mask.h"

namespace phalanx {

at::Tensor mask_of(const at::Tensor& positions, DecoderCache* cache) {
  const at::Tensor& all = cache == nullptr ? positions : cache->append_positions(positions);
  return document_mask(all, positions.size(-1));
}

std::optional<KeyValueCache> layer_of(DecoderCache* cache, size_t layer) {
  return cache == nullptr ? std::nullopt : std::optional(cache->layer(layer));
}

}  // namespace phalanx
