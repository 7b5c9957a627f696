// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "trainer/api/tensor_box.h"

namespace phalanx {

/// The elements of `part`, a box within `held`, where they lie: `values` are those of `held`,
/// contiguous, of whatever shape. Writes go there.
at::Tensor box_of(const at::Tensor& values, const BoxRange& held, const TensorBox& part);

/// A copy of the values of boxes within `held`, one after the other, each in row-major order.
/// `values` need not be contiguous; they are then best of the shape of held.box.
at::Tensor packed(const at::Tensor& values, const BoxRange& held, std::span<const TensorBox> boxes);

/// The reverse: puts what `packed` made of boxes into `values`, contiguous, those of `held`.
void unpack(const at::Tensor& packed, std::span<const TensorBox> boxes, const at::Tensor& values,
            const BoxRange& held);

/// `count` elements from `begin` on of a tensor flattened in row-major order: where they lie if it
/// is contiguous, else a copy of these alone.
at::Tensor flat_range(const at::Tensor& tensor, int64_t begin, int64_t count);

}  // namespace phalanx
