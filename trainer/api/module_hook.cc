// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/module_hook.h"

#include <utility>

namespace phalanx {
namespace {

thread_local bool recomputing = false;

}  // namespace

void HookedModule::attach(std::shared_ptr<ModuleHook> hook, HookPlace place) {
  hooks_.insert(place == HookPlace::outermost ? hooks_.begin() : hooks_.end(), std::move(hook));
}

std::vector<at::Tensor> HookedModule::run(std::vector<at::Tensor> inputs, ModuleForward forward) {
  for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) {
    forward = [this, hook = *hook, within = std::move(forward)](std::vector<at::Tensor> tensors) {
      return hook->around(*this, std::move(tensors), within);
    };
  }
  return forward(std::move(inputs));
}

bool is_recomputing() { return recomputing; }

Recomputation::Recomputation() : before_(recomputing) { recomputing = true; }
Recomputation::~Recomputation() { recomputing = before_; }

}  // namespace phalanx
