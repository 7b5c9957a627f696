// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Zeros in the layout of a contiguous CPU tensor, whose pages the kernel hands out on first touch
/// and has already cleared: at::zeros would write all of them, which for an optimizer's moments is
/// a pass over twice the model before the first step. The storage cannot be resized. Throws
/// std::bad_alloc.
at::Tensor zero_pages_like(const at::Tensor& tensor);

}  // namespace phalanx
