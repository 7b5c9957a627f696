// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>

namespace phalanx::activations {

/// Makes the hooks of one saved tensor.
using MakeHooks = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

/// While it lives, what autograd saves for the backward pass on this thread goes through hooks
/// (torch.autograd.graph.saved_tensors_hooks, which C++ does not have). The innermost counts.
class SavedTensorsScope {
 public:
  explicit SavedTensorsScope(MakeHooks make_hooks);
  SavedTensorsScope(const SavedTensorsScope&) = delete;
  SavedTensorsScope& operator=(const SavedTensorsScope&) = delete;
  ~SavedTensorsScope();

  /// Whether one lives on this thread.
  static bool is_active();

  /// The hooks for a tensor that is saved now; none where no scope lives.
  static std::unique_ptr<torch::autograd::SavedVariableHooks> hooks_for_next();

 private:
  MakeHooks make_hooks_;
  SavedTensorsScope* outer_;
};

}  // namespace phalanx::activations
