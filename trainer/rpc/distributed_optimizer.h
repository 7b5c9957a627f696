// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/rpc/agent.h"
#include "trainer/rpc/functions.h"

namespace phalanx::rpc {

/// The parameters of one worker with their optimizer, which other workers have step by the
/// gradients of their context. Serve `function()` under a name in AgentOptions::functions. Calls
/// are made one after the other. The parameters' version counters stay, so that a pass of another
/// worker that is under way may still go back through them (asynchronous updates).
class ServedOptimizer {
 public:
  /// The optimizer is bound to the parameters here.
  ServedOptimizer(std::vector<ParameterGroup> groups, std::shared_ptr<Optimizer> optimizer);

  /// Moves the parameters by gradients, in their groups' order; an undefined one leaves its
  /// parameter as it is. `factor` is the schedule's.
  void step(const std::vector<at::Tensor>& gradients, double factor = 1);
  /// The same by the gradients of the caller's context. `text` of the arguments: the factor. This
  /// must outlive the agent that serves it.
  Function function();

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  std::mutex mutex_;
  std::vector<at::Tensor> parameters_;  ///< As forward passes use them.
  std::vector<at::Tensor> aliases_;     ///< The same memory, for the optimizer.
  std::shared_ptr<Optimizer> optimizer_;
};

/// Has optimizers of other workers step by the gradients of a context
/// (torch.distributed.optim.DistributedOptimizer).
class DistributedOptimizer {
 public:
  /// `workers` serve a ServedOptimizer as `function`. `agent` must outlive it.
  DistributedOptimizer(const Agent& agent, std::vector<std::string> workers, std::string function);

  /// In this thread's context. Returns once all have stepped.
  void step(double factor = 1) const;

 private:
  const Agent& agent_;
  std::vector<std::string> workers_;
  std::string function_;
};

}  // namespace phalanx::rpc
