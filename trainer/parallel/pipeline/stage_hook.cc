// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/stage_hook.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::pipeline {
namespace {

// Which inputs of a unit have a row for each sample.
enum class Rows { of_first_argument, of_all_like_it, of_none };
constexpr std::array kWays{Rows::of_first_argument, Rows::of_all_like_it, Rows::of_none};

// Without these rows, so that a unit that computes with them costs nothing.
std::vector<at::Tensor> without_rows(std::vector<at::Tensor> inputs, Rows rows) {
  if (rows == Rows::of_none) return inputs;
  const int64_t samples = inputs.front().size(0);
  for (at::Tensor& input : inputs) {
    if (input.defined() && input.dim() > 0 && input.size(0) == samples) {
      input = input.narrow(0, 0, 0);
    }
    if (rows == Rows::of_first_argument) break;
  }
  return inputs;
}

// Calls a unit for the form of what its holder returns; the values do not matter. Nothing says
// which inputs have rows of samples: a unit throws where it gets some without rows beside others
// with them.
void call_for_form(const std::vector<at::Tensor>& inputs, const ModuleForward& forward) {
  const at::NoGradGuard no_grad;
  for (const Rows rows : kWays) {
    try {
      forward(without_rows(inputs, rows));
      return;
    } catch (const std::exception&) {
      if (rows == kWays.back()) throw;
    }
  }
}

[[noreturn]] void refuse_model(std::string_view needed) {
  throw std::logic_error(
      fmt::format("a pipeline needs {}: train this model with name: supervised", needed));
}

class UnitHook final : public ModuleHook {
 public:
  UnitHook(std::shared_ptr<StagePass> pass, int64_t index)
      : pass_(std::move(pass)), index_(index) {}

  std::vector<at::Tensor> around(HookedModule& /*module*/, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    return pass_->around(index_, std::move(inputs), forward);
  }

 private:
  std::shared_ptr<StagePass> pass_;
  int64_t index_;
};

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
    refuse_model("a model that calls its units once each, in the order of their registration");
  }
  if (inputs.empty() || !inputs.front().defined() || inputs.front().dim() < 3) {
    refuse_model("units whose first argument is a tensor [batch, place, width]");
  }
  if (index < units_.first) return pass_over(inputs, forward);
  if (index == units_.first && index > 0) put_received(inputs);
  const std::vector<int64_t> sizes = inputs.front().sizes().vec();
  std::vector<at::Tensor> outputs = forward(std::move(inputs));
  if (outputs.size() != 1 || !outputs.front().defined() || outputs.front().sizes() != sizes) {
    refuse_model("units whose result is one tensor of the shape of the first argument");
  }
  if (index + 1 == units_.end && units_.end < units_.of_model) {
    send_(outputs.front());
    throw StageIsOver();
  }
  return outputs;
}

std::vector<at::Tensor> StagePass::pass_over(const std::vector<at::Tensor>& inputs,
                                             const ModuleForward& forward) {
  call_for_form(inputs, forward);
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
    refuse_model(
        "a model that gives each unit the result of the one before, without work between them");
  }
  at::Tensor received = receive_();
  if (received.sizes() != standing_in_.sizes()) {
    throw std::logic_error(fmt::format("a stage has got {} values, and expects {}",
                                       received.numel(), standing_in_.numel()));
  }
  *place = std::move(received);
  standing_in_.reset();
}

std::shared_ptr<ModuleHook> unit_hook(std::shared_ptr<StagePass> pass, int64_t index) {
  return std::make_shared<UnitHook>(std::move(pass), index);
}

}  // namespace phalanx::pipeline
