// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/module_hook.h"

#include <mutex>
#include <utility>

namespace phalanx {
namespace {

thread_local bool recomputing = false;

// What has left a module last. A backward pass that computes a forward once more may do so in
// another thread, which passes the exception on.
struct Failure {
  std::mutex mutex;
  std::exception_ptr error;
  const HookedModule* module = nullptr;
};

Failure& last_failure() {
  static Failure failure;
  return failure;
}

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

void HookedModule::note_failure() const {
  Failure& failure = last_failure();
  const std::lock_guard lock(failure.mutex);
  const std::exception_ptr error = std::current_exception();
  if (failure.error == error) return;
  failure.error = error;
  failure.module = this;
}

const HookedModule* failed_module(const std::exception_ptr& error) {
  Failure& failure = last_failure();
  const std::lock_guard lock(failure.mutex);
  return failure.error == error ? failure.module : nullptr;
}

bool is_recomputing() { return recomputing; }

Recomputation::Recomputation() : before_(recomputing) { recomputing = true; }
Recomputation::~Recomputation() { recomputing = before_; }

}  // namespace phalanx
