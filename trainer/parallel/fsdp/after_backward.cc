// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/after_backward.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace phalanx::fsdp {
namespace {

bool needs_gradient(const at::Tensor& input) { return input.defined() && input.requires_grad(); }

struct Callback : torch::CustomClassHolder {
  explicit Callback(std::function<void()> given) : function(std::move(given)) {}
  std::function<void()> function;
};

// The identity: its backward runs when that of what is computed from its results is over.
struct AfterBackward : torch::autograd::Function<AfterBackward> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const c10::intrusive_ptr<Callback>& callback,
                                                at::TensorList inputs) {
    context->set_materialize_grads(false);
    context->saved_data["callback"] = c10::IValue::make_capsule(callback);
    return inputs.vec();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    c10::static_intrusive_pointer_cast<Callback>(context->saved_data["callback"].toCapsule())
        ->function();
    gradients.insert(gradients.begin(), at::Tensor());  // of the callback
    return gradients;
  }
};

}  // namespace

void call_after_backward(std::vector<at::Tensor>& inputs, std::function<void()> function) {
  torch::autograd::variable_list joined;
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(joined), needs_gradient);
  if (joined.empty()) return;
  joined = AfterBackward::apply(c10::make_intrusive<Callback>(std::move(function)),
                                at::TensorList(joined));
  auto next = joined.begin();
  for (at::Tensor& input : inputs) {
    if (needs_gradient(input)) input = *next++;
  }
}

void call_at_end_of_backward(std::function<void()> function) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(function));
}

}  // namespace phalanx::fsdp
