// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/outputs_node.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <utility>

#include "trainer/parallel/ddp/ordered_reducer.h"

namespace phalanx {
namespace {

struct JoinOutputs : torch::autograd::Function<JoinOutputs> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const c10::intrusive_ptr<SharedReducer>& shared,
                                                at::TensorList inputs) {
    context->set_materialize_grads(false);
    context->saved_data["shared"] = c10::IValue::make_capsule(shared);
    torch::autograd::variable_list outputs;
    for (const auto& input : inputs) outputs.push_back(input.clone());
    return outputs;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto shared = c10::static_intrusive_pointer_cast<SharedReducer>(
        context->saved_data["shared"].toCapsule());
    if (shared->static_graph && !std::exchange(shared->delay_enqueued, true)) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = shared->reducer] { reducer->delay_all_reduce(); });
    }
    gradients.insert(gradients.begin(), at::Tensor());  // of `shared`
    return gradients;
  }
};

}  // namespace

void join_outputs(std::vector<at::Tensor>& outputs,
                  const c10::intrusive_ptr<SharedReducer>& shared) {
  // Outputs that need no gradient stay out of the graph (pytorch issue 60733).
  torch::autograd::variable_list joined;
  for (const auto& output : outputs) {
    if (output.grad_fn()) joined.push_back(output);
  }
  if (joined.empty()) return;
  joined = JoinOutputs::apply(shared, at::TensorList(joined));
  auto next = joined.begin();
  for (auto& output : outputs) {
    if (output.grad_fn()) output = *next++;
  }
}

}  // namespace phalanx
