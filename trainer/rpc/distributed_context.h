// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace phalanx::rpc {

class Agent;

/// A pass whose graph goes over several workers (torch.distributed.autograd.context): what this
/// thread calls between its construction and its destruction belongs to it, and what the called
/// functions call. Gradients are kept in the context, on the worker of each parameter, and not in
/// `grad()`. One a thread at a time. Without one a remote answer is a leaf, and its gradient is
/// lost.
class DistributedContext {
 public:
  /// `agent` must outlive it.
  explicit DistributedContext(const Agent& agent);
  DistributedContext(const DistributedContext&) = delete;
  DistributedContext& operator=(const DistributedContext&) = delete;
  /// Drops the graph and the gradients, on all workers.
  ~DistributedContext();

  int64_t id() const { return id_; }

  /// Computes the gradients of scalars, on all workers. A second call adds to them, where the first
  /// one has kept the graph. Every remote answer that needs a gradient takes part in the roots:
  /// one that does not holds this until the agent's timeout. Throws WorkerLost with the names of
  /// the workers that do not answer, RemoteError with the error of another worker, and rethrows an
  /// error of this worker as it is.
  void backward(std::vector<at::Tensor> roots, bool retain_graph = false) const;

  /// The gradients of these parameters of this worker, by place; undefined where the graph has not
  /// come to one.
  std::vector<at::Tensor> gradients(std::span<const at::Tensor> parameters) const;

 private:
  const Agent& agent_;
  int64_t id_;
};

/// In a function that was called in a context of the caller: the gradients of these parameters of
/// this worker, as above. Throws std::logic_error without a context.
std::vector<at::Tensor> gradients_of_call(std::span<const at::Tensor> parameters);

}  // namespace phalanx::rpc
