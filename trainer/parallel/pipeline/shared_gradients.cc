// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/shared_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx::pipeline {
namespace {

// Adds to a gradient, which becomes `other` if it is not defined.
void add(at::Tensor& gradient, const at::Tensor& other) {
  if (gradient.defined()) {
    gradient.add_(other);
  } else {
    gradient = other;
  }
}

}  // namespace

SharedGradients::SharedGradients(std::span<const HeldParameter> parameters, int64_t stage,
                                 int64_t stages)
    : other_stage_(stage == 0 ? stages - 1 : 0) {
  for (const HeldParameter& held : parameters) {
    if (!held.is_here || !held.is_shared()) continue;
    shared_.push_back({.parameter = held.parameter.tensor, .earlier = {}});
  }
}

void SharedGradients::set_aside_sums() {
  if (!std::exchange(are_sums_, false)) return;
  for (Shared& each : shared_) {
    each.earlier = each.parameter.grad();
    each.parameter.mutable_grad().reset();
  }
}

void SharedGradients::sum(Letters& letters) {
  if (shared_.empty()) return;
  const std::string key = fmt::format("gradients outside the units {}", ++round_);
  rpc::Values mine;
  for (const Shared& each : shared_) {
    const at::Tensor& gradient = each.parameter.grad();
    mine.text += gradient.defined() ? '1' : '0';
    if (gradient.defined()) mine.tensors.push_back(gradient.detach().clone());
  }
  letters.send(other_stage_, key, std::move(mine));
  const rpc::Values theirs = letters.receive(other_stage_, key);
  if (theirs.text.size() != shared_.size() ||
      std::ranges::count(theirs.text, '1') != std::ssize(theirs.tensors)) {
    throw std::logic_error("the first and the last stage do not hold the same parameters");
  }
  auto next = theirs.tensors.begin();
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    at::Tensor& gradient = shared_[i].parameter.mutable_grad();
    if (theirs.text[i] == '1') add(gradient, *next++);
    at::Tensor& earlier = shared_[i].earlier;
    if (earlier.defined()) add(gradient, earlier);
    earlier.reset();
  }
  are_sums_ = true;
}

}  // namespace phalanx::pipeline
