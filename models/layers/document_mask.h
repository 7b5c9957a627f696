// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Which places a token attends to where a sequence holds several documents: those of its own, up
/// to its own. `positions` (int64 [batch, length]) has the place of each token in its document; 0
/// begins one. The result, bool [batch, 1, length, length], is a mask for
/// scaled_dot_product_attention.
at::Tensor document_mask(const at::Tensor& positions);

}  // namespace phalanx
