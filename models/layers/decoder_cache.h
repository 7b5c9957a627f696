// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

#include "models/interfaces/decoder_cache.h"

namespace phalanx {

/// What a model without a DecoderCache computes, and with one.

/// The document_mask of new tokens at `positions` (int64 [batch, new]) to all tokens up to them.
at::Tensor mask_of(const at::Tensor& positions, DecoderCache* cache);

/// The cache of a layer; none without one.
std::optional<KeyValueCache> layer_of(DecoderCache* cache, size_t layer);

}  // namespace phalanx
