// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/loss.h"

#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>

#include <stdexcept>
#include <unordered_set>

namespace phalanx {

Loss::Loss(Parts parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw std::invalid_argument("a task returned a loss without any part");
  if (parts_.size() == 1) return;
  std::unordered_set<std::string> names{"loss"};
  for (const auto& [name, value] : parts_) {
    if (names.insert(name).second) continue;
    throw std::invalid_argument(
        name == "loss" ? "a part of a named loss may not be called 'loss': that is the sum"
                       : "two parts of a named loss are called '" + name + "'");
  }
}

at::Tensor Loss::total() const {
  at::Tensor sum = parts_.front().second;
  for (size_t i = 1; i < parts_.size(); ++i) sum = sum.add(parts_[i].second);
  return sum;
}

Loss Loss::with_values(const std::vector<at::Tensor>& values) && {
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].second = values.at(i);
  return std::move(*this);
}

void Loss::metric(std::string name, MetricInputs inputs) {
  for (at::Tensor& input : inputs) input = input.detach();
  metrics_.push_back({.name = std::move(name), .inputs = std::move(inputs)});
}

// Filled where the value is: a weight copied to a device would be waited for.
void Loss::metric(std::string name, const at::Tensor& value, double weight) {
  metric(std::move(name),
         MetricInputs{value, at::full(value.sizes(), weight,
                                      value.options().dtype(at::kDouble).requires_grad(false))});
}

void Loss::metric(std::string name, double value, double weight) {
  metric(std::move(name), at::scalar_tensor(value, at::TensorOptions().dtype(at::kDouble)), weight);
}

}  // namespace phalanx
