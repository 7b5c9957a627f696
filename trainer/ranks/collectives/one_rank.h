// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/ranks/ranks.h"

/// Collectives with one rank that gives or gets all. Tensors as Ranks'; of the same shape and dtype
/// on all ranks. Throw std::invalid_argument for a rank or a shape that does not fit.
namespace phalanx {

/// The reduction of all ranks' `tensor`, in that of the rank `destination`; what the others' hold
/// afterwards is not defined.
void reduce(const Ranks& ranks, const at::Tensor& tensor, int64_t destination,
            Reduction reduction = Reduction::sum);
Pending start_reduce(const Ranks& ranks, const at::Tensor& tensor, int64_t destination,
                     Reduction reduction = Reduction::sum);

/// Every rank's `input`, one after the other along the first dimension of the `output` of the rank
/// `destination`; the others give an undefined tensor for it.
void gather(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
            int64_t destination);
Pending start_gather(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                     int64_t destination);

/// Part r of the `input` of the rank `source`, in rank r's `output`; the others give an undefined
/// tensor for the input.
void scatter(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input, int64_t source);
Pending start_scatter(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                      int64_t source);

}  // namespace phalanx
