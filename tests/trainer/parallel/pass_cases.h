// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace phalanx {

/// What runs the passes of a case: nothing on one rank, an engine on many.
struct PassRunner {
  /// As ParallelEngine::run_tensors, of one tensor.
  std::function<at::Tensor(const std::function<at::Tensor()>& pass, bool synchronize)> forward;
  /// As ParallelEngine::use.
  std::function<void(const std::function<void()>& action)> use;
};

/// The loss of this rank's batch `i`: of the whole model, or of one that leaves a unit out where it
/// has one that can be.
using LossOf = std::function<at::Tensor(int64_t i, bool is_whole)>;

/// An order of forward and backward passes that leaves gradients, the last of them reduced.
struct PassCase {
  std::string name;
  void (*run)(const PassRunner& runner, const LossOf& loss);
};

/// Orders that differ from a forward pass and its backward pass.
std::vector<PassCase> pass_cases();

/// One rank's way to run passes.
PassRunner plain_runner();

}  // namespace phalanx
