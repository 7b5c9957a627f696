// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/activations/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>

#include <mutex>
#include <utility>

namespace phalanx::activations {
namespace {

thread_local SavedTensorsScope* innermost = nullptr;

// Autograd asks its engine for hooks whenever it saves a tensor; Python's engine answers from the
// stack of Python's hooks, and this one from ours (torch/csrc/autograd/python_engine.cpp).
class EngineWithHooks final : public torch::autograd::Engine {
 public:
  // As LibTorch's own it is never destroyed: its threads may outlive main.
  static torch::autograd::Engine& instance() {
    static auto* const engine = new EngineWithHooks;
    return *engine;
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return SavedTensorsScope::hooks_for_next();
  }
};

}  // namespace

SavedTensorsScope::SavedTensorsScope(MakeHooks make_hooks)
    : make_hooks_(std::move(make_hooks)), outer_(innermost) {
  static std::once_flag once;
  std::call_once(once,
                 [] { torch::autograd::set_default_engine_stub(&EngineWithHooks::instance); });
  innermost = this;
}

SavedTensorsScope::~SavedTensorsScope() { innermost = outer_; }

bool SavedTensorsScope::is_active() { return innermost != nullptr; }

std::unique_ptr<torch::autograd::SavedVariableHooks> SavedTensorsScope::hooks_for_next() {
  return innermost == nullptr ? nullptr : innermost->make_hooks_();
}

}  // namespace phalanx::activations
