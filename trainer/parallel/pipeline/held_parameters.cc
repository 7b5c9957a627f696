// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/held_parameters.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::pipeline {
namespace {

at::Tensor nan_like(const at::Tensor& tensor) {
  const at::Tensor one = tensors::empty({1}, tensor.options().requires_grad(false));
  one.fill_(std::numeric_limits<double>::quiet_NaN());
  return one.expand(tensor.sizes());
}

void give_up(const HeldParameter& held) {
  if (!held.is_here) held.parameter.tensor.set_data(held.without_values);
}

// Allocates nothing: a destructor calls it.
class GivenUpAgain {
 public:
  explicit GivenUpAgain(std::span<const HeldParameter> parameters) : parameters_(parameters) {}
  GivenUpAgain(const GivenUpAgain&) = delete;
  GivenUpAgain& operator=(const GivenUpAgain&) = delete;
  ~GivenUpAgain() { std::ranges::for_each(parameters_, give_up); }

 private:
  std::span<const HeldParameter> parameters_;
};

}  // namespace

std::vector<HeldParameter> hold(const std::vector<StagedParameter>& parameters, int64_t stage) {
  std::vector<HeldParameter> all;
  for (const StagedParameter& parameter : parameters) {
    HeldParameter held{.parameter = parameter};
    held.is_here = std::ranges::find(parameter.stages, stage) != parameter.stages.end();
    if (!held.is_here) {
      held.without_elements = tensors::empty({0}, parameter.tensor.options().requires_grad(false));
      held.without_elements.requires_grad_(parameter.tensor.requires_grad());
      held.without_values = nan_like(parameter.tensor);
      give_up(held);
    }
    all.push_back(std::move(held));
  }
  return all;
}

void give_empty_gradients(std::span<const HeldParameter> parameters) {
  for (const HeldParameter& held : parameters) {
    if (held.is_here || !held.parameter.tensor.requires_grad()) continue;
    held.without_elements.mutable_grad() = held.without_elements.detach();
  }
}

void with_all_parameters(std::span<const HeldParameter> parameters, const Ranks& ranks,
                         const std::function<void()>& action) {
  const GivenUpAgain given_up_again(parameters);
  for (const HeldParameter& held : parameters) {
    const at::Tensor& tensor = held.parameter.tensor;
    const at::Tensor values =
        held.is_here ? tensor.variable_data()
                     : tensors::empty(tensor.sizes(), tensor.options().requires_grad(false));
    ranks.broadcast(values, held.parameter.stages.front());
    if (!held.is_here) tensor.set_data(values);
  }
  action();
}

}  // namespace phalanx::pipeline
