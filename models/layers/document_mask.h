// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Causal mask within documents: true at [b, 0, i, j] if token j is in the document of token i and
/// j <= i. `positions` (int64 [batch, length]) counts from 0 in each document. The mask is bool
/// [batch, 1, length, length].
at::Tensor document_mask(const at::Tensor& positions);

}  // namespace phalanx
