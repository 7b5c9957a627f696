// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// Causal mask within documents, of the last `queries` tokens: true at [b, 0, i, j] if token j is
/// in the document of query i, and not behind it. `positions` (int64 [batch, length]) counts from 0
/// in each document. The mask is bool [batch, 1, queries, length].
at::Tensor document_mask(const at::Tensor& positions, int64_t queries);

}  // namespace phalanx
