// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/distributed_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/rpc/distributed_context.h"

namespace phalanx::rpc {

ServedOptimizer::ServedOptimizer(std::vector<ParameterGroup> groups,
                                 std::shared_ptr<Optimizer> optimizer)
    : optimizer_(std::move(optimizer)) {
  for (ParameterGroup& group : groups) {
    for (NamedParameter& parameter : group.parameters) {
      parameters_.push_back(parameter.tensor);
      parameter.tensor = parameter.tensor.variable_data();
      aliases_.push_back(parameter.tensor);
    }
  }
  optimizer_->bind(std::move(groups));
}

void ServedOptimizer::step(const std::vector<at::Tensor>& gradients, double factor) {
  if (gradients.size() != aliases_.size()) {
    throw std::invalid_argument(fmt::format("{} gradients for {} parameters of a served optimizer",
                                            gradients.size(), aliases_.size()));
  }
  const at::NoGradGuard no_grad;
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < aliases_.size(); ++i) aliases_[i].mutable_grad() = gradients[i];
  optimizer_->step_by(factor);
  for (const at::Tensor& alias : aliases_) alias.mutable_grad().reset();
}

Function ServedOptimizer::function() {
  return function_of([this](const Values& arguments) {
    step(gradients_of_call(parameters_), std::stod(arguments.text));
    return Values{};
  });
}

DistributedOptimizer::DistributedOptimizer(const Agent& agent, std::vector<std::string> workers,
                                           std::string function)
    : agent_(agent), workers_(std::move(workers)), function_(std::move(function)) {}

void DistributedOptimizer::step(double factor) const {
  std::vector<Future> steps;
  for (const std::string& worker : workers_) {
    steps.push_back(agent_.call_async(worker, function_, {.text = fmt::format("{}", factor)}));
  }
  wait_all(steps);
}

}  // namespace phalanx::rpc
