// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/ranks/ranks.h"

/// One operation on several tensors, which costs less than one on each where they are small. All of
/// one dtype and device; the same shapes on all ranks. Throw std::invalid_argument for other ones.
namespace phalanx {

/// As Ranks::all_reduce of each.
void all_reduce_coalesced(const Ranks& ranks, const std::vector<at::Tensor>& tensors,
                          Reduction reduction = Reduction::sum);
Pending start_all_reduce_coalesced(const Ranks& ranks, const std::vector<at::Tensor>& tensors,
                                   Reduction reduction = Reduction::sum);

/// As Ranks::all_gather of each pair.
void all_gather_coalesced(const Ranks& ranks, const std::vector<at::Tensor>& outputs,
                          const std::vector<at::Tensor>& inputs);
Pending start_all_gather_coalesced(const Ranks& ranks, const std::vector<at::Tensor>& outputs,
                                   const std::vector<at::Tensor>& inputs);

/// As Ranks::reduce_scatter of each pair.
void reduce_scatter_coalesced(const Ranks& ranks, const std::vector<at::Tensor>& outputs,
                              const std::vector<at::Tensor>& inputs,
                              Reduction reduction = Reduction::sum);

}  // namespace phalanx
