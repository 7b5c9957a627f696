// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/ranks/ranks.h"

/// Collectives that autograd goes through, as torch.distributed.nn.functional's. The gradient that
/// they give is that of the sum of all ranks' losses: where DDP or FSDP then average over the
/// ranks, it becomes that of the mean. The backward pass of each is a collective too: on every rank
/// the loss uses the result, and all ranks run their passes in the same order. A second derivative
/// is right as well (create_graph). Tensors are of the same shape and dtype on all ranks. Throw
/// CommunicationError, and std::invalid_argument for a shape or a reduction that does not fit.
namespace phalanx::differentiable {

/// Every rank's `input` [n, ...], one after the other: [world_size * n, ...]; [world_size] for a
/// tensor without dimensions.
at::Tensor all_gather(const Ranks& ranks, const at::Tensor& input);

/// This rank's part [n, ...] of the reduction of all ranks' `input` [world_size * n, ...]. By sum
/// or average.
at::Tensor reduce_scatter(const Ranks& ranks, const at::Tensor& input,
                          Reduction reduction = Reduction::sum);

/// The reduction of all ranks' `input`, in a tensor of its own. By sum or average.
at::Tensor all_reduce(const Ranks& ranks, const at::Tensor& input,
                      Reduction reduction = Reduction::sum);

/// Part r of the result is part `rank` of rank r's `input` [world_size * n, ...].
at::Tensor all_to_all(const Ranks& ranks, const at::Tensor& input);

}  // namespace phalanx::differentiable
