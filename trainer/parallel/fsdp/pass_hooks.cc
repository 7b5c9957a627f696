// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/pass_hooks.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <stdexcept>
#include <utility>

#include "trainer/parallel/fsdp/after_backward.h"

namespace phalanx::fsdp {
namespace {

// What a unit of the model calls around its forward.
class UnitHook final : public ModuleHook {
 public:
  UnitHook(std::weak_ptr<PassHooks> hooks, ShardedUnit& unit)
      : hooks_(std::move(hooks)), unit_(unit) {}

  std::vector<at::Tensor> around(HookedModule&, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    return alive()->around_unit(unit_, std::move(inputs), forward);
  }

 private:
  std::shared_ptr<PassHooks> alive() const {
    if (auto hooks = hooks_.lock()) return hooks;
    throw std::logic_error("a sharded model is used after its FullyShardedDataParallel has ended");
  }

  std::weak_ptr<PassHooks> hooks_;
  ShardedUnit& unit_;
};

}  // namespace

PassHooks::PassHooks(Schedule& schedule, std::optional<at::ScalarType> input_dtype)
    : schedule_(schedule), input_dtype_(input_dtype) {}

void PassHooks::attach(const std::vector<std::unique_ptr<ShardedUnit>>& units,
                       std::weak_ptr<PassHooks> self) {
  self_ = std::move(self);
  for (const auto& unit : units) {
    if (unit->unit() == nullptr) continue;
    // Around everything else: what is computed again in the backward pass finds the unit whole.
    unit->unit()->attach(std::make_shared<UnitHook>(self_, *unit), HookPlace::outermost);
  }
}

void PassHooks::begin_pass() {
  pass_ = passes_.begin();
  pass_->versions = schedule_.weights_versions();
  watched_.clear();
}

std::vector<at::Tensor> PassHooks::around_unit(ShardedUnit& unit, std::vector<at::Tensor> inputs,
                                               const ModuleForward& forward) {
  cast_inputs(inputs);
  if (is_recomputing()) {
    const bool was_gathered_for_it = schedule_.before_recomputation(unit);
    std::vector<at::Tensor> results = forward(std::move(inputs));
    schedule_.after_recomputation(unit, was_gathered_for_it);
    return results;
  }
  const bool with_backward = at::GradMode::is_enabled();
  schedule_.before_forward(unit, with_backward);
  if (with_backward) {
    if (!pass_) begin_pass();
    pass_->calls.push_back(unit.number());
    watch_inputs(unit, inputs);
  }
  std::vector<at::Tensor> results = forward(std::move(inputs));
  schedule_.after_forward(unit, with_backward);
  if (with_backward) watch_results(unit, results);
  return results;
}

void PassHooks::cast_inputs(std::vector<at::Tensor>& inputs) const {
  if (!input_dtype_) return;
  for (at::Tensor& input : inputs) {
    if (input.defined() && input.is_floating_point()) input = input.to(*input_dtype_);
  }
}

void PassHooks::watch_inputs(ShardedUnit& unit, std::vector<at::Tensor>& inputs) {
  // A call without such an input is never closed: the end of the backward pass takes care of it.
  call_after_backward(inputs, [weak = self_, &unit, pass = pass_] {
    const auto hooks = weak.lock();
    if (!hooks) return;
    hooks->enter_backward(pass);
    hooks->schedule_.after_backward(unit);
  });
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || !input.requires_grad()) continue;
    watched_.insert(input.unsafeGetTensorImpl());
    pass_->add_node_of(input);
  }
}

// The first gradient of a call's results begins its backward: nothing in the call has one before.
// Once in each backward pass that comes to it.
void PassHooks::watch_results(ShardedUnit& unit, std::vector<at::Tensor>& results) {
  const auto begun_in = std::make_shared<int64_t>(0);
  for (at::Tensor& result : results) {
    if (!result.defined() || !result.requires_grad()) continue;
    // What came in, or what a unit within has given, too: autograd would come to that one first,
    // and on a rank where something is done with it, to this one.
    if (watched_.contains(result.unsafeGetTensorImpl())) result = result.alias();
    watched_.insert(result.unsafeGetTensorImpl());
    pass_->add_node_of(result);
    result.register_hook([weak = self_, &unit, pass = pass_, begun_in](const auto&) {
      const auto hooks = weak.lock();
      if (!hooks) return;
      hooks->enter_backward(pass);
      const int64_t now = hooks->backward_passes_;
      if (std::exchange(*begun_in, now) != now) hooks->schedule_.before_backward(unit);
    });
  }
}

// One that is a parameter itself would keep the hook for good.
void PassHooks::watch_loss(const at::Tensor& loss) {
  if (!at::GradMode::is_enabled() || !loss.defined() || !loss.grad_fn()) return;
  pass_->add_node_of(loss);
  loss.register_hook([weak = self_, pass = pass_](const at::Tensor&) {
    if (const auto hooks = weak.lock()) hooks->enter_backward(pass);
  });
}

void PassHooks::enter_backward(const std::shared_ptr<ForwardPass>& pass) {
  const int task = torch::autograd::get_current_graph_task_id();
  if (std::exchange(task_, task) == task) return;
  ++backward_passes_;
  call_at_end_of_backward([weak = self_] {
    if (const auto hooks = weak.lock()) hooks->schedule_.end_backward();
  });
  schedule_.begin_backward(passes_.in_backward(pass));
}

}  // namespace phalanx::fsdp
