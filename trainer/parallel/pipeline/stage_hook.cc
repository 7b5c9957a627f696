// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/stage_hook.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::pipeline {
namespace {

// No rows of a batch: a unit that computes with them costs nothing. Tensors of fewer dimensions
// than three are those of places, which all rows share.
std::vector<at::Tensor> without_rows(std::vector<at::Tensor> inputs) {
  const int64_t rows = inputs.front().size(0);
  for (at::Tensor& input : inputs) {
    if (input.defined() && input.dim() >= 3 && input.size(0) == rows) input = input.narrow(0, 0, 0);
  }
  return inputs;
}

}  // namespace

StagePass::StagePass(Units units, Receive receive, Send send)
    : units_(units), receive_(std::move(receive)), send_(std::move(send)) {}

void StagePass::begin() {
  is_running_ = true;
  next_ = 0;
  standing_in_.reset();
}

std::vector<at::Tensor> StagePass::around(int64_t index, std::vector<at::Tensor> inputs,
                                          const ModuleForward& forward) {
  if (!is_running_ || is_recomputing()) return forward(std::move(inputs));
  if (index != next_++) {
    throw std::logic_error(
        "a pipeline needs a model that calls its units once each, in the order of their "
        "registration");
  }
  if (inputs.empty() || !inputs.front().defined() || inputs.front().dim() < 3) {
    throw std::logic_error(
        "a pipeline needs units whose first argument is a tensor [batch, place, width]");
  }
  if (index < units_.first) return pass_over(inputs, forward);
  if (index == units_.first && index > 0) put_received(inputs);
  const std::vector<int64_t> sizes = inputs.front().sizes().vec();
  std::vector<at::Tensor> outputs = forward(std::move(inputs));
  if (outputs.size() != 1 || !outputs.front().defined() || outputs.front().sizes() != sizes) {
    throw std::logic_error(
        "a pipeline needs units whose result is one tensor of the shape of the first argument");
  }
  if (index + 1 == units_.end && units_.end < units_.of_model) {
    send_(outputs.front());
    throw StageIsOver();
  }
  return outputs;
}

// The unit is called for the shape of what its holder returns.
std::vector<at::Tensor> StagePass::pass_over(const std::vector<at::Tensor>& inputs,
                                             const ModuleForward& forward) {
  const at::NoGradGuard no_grad;
  forward(without_rows(inputs));
  const at::Tensor& first = inputs.front();
  at::Tensor none = tensors::empty({1}, first.options().requires_grad(false));
  none.fill_(std::numeric_limits<double>::quiet_NaN());
  standing_in_ = none.expand(first.sizes());
  return {standing_in_};
}

void StagePass::put_received(std::vector<at::Tensor>& inputs) {
  const auto place = std::ranges::find_if(
      inputs, [this](const at::Tensor& input) { return input.is_same(standing_in_); });
  if (place == inputs.end()) {
    throw std::logic_error(
        "a pipeline needs a model that gives each unit the result of the one before, without work "
        "between them");
  }
  at::Tensor received = receive_();
  if (received.sizes() != standing_in_.sizes()) {
    throw std::logic_error(fmt::format("a stage has got {} values, and expects {}",
                                       received.numel(), standing_in_.numel()));
  }
  *place = std::move(received);
  standing_in_.reset();
}

}  // namespace phalanx::pipeline
