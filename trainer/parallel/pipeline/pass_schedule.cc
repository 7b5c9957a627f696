// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/pass_schedule.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::pipeline {
namespace {

[[noreturn]] void refuse_disagreement(int64_t pass, const std::string& with,
                                      const std::string& without) {
  throw std::logic_error(fmt::format(
      "pass {} has its backward pass on {}, and not on {}: all stages leave out the same ones. A "
      "loss is known to the last stage alone in training; have the ranks agree by a collective",
      pass, with, without));
}

}  // namespace

std::string activation_key(int64_t pass) { return fmt::format("activation {}", pass); }

std::string gradient_key(int64_t pass) { return fmt::format("gradient {}", pass); }

rpc::Values no_gradient() { return {.text = "none"}; }

void PassSchedule::add(WaitingPass pass) {
  waiting_.push_back(std::move(pass));
  most_waiting_ = std::max(most_waiting_, static_cast<int64_t>(waiting_.size()));
}

void PassSchedule::release_left_out(OpenPasses& open) {
  for (const int64_t number : open.take_left_out()) {
    const auto left = std::ranges::find(waiting_, number, &WaitingPass::number);
    if (left == waiting_.end()) continue;
    // An answer comes of the last stage only where a gradient would.
    left->is_left_out = left->output.requires_grad();
    left->output = tensors::empty({0}, left->output.options().requires_grad(false));
  }
}

void PassSchedule::backward(int64_t pass, bool all, OpenPasses& open) {
  const auto called = std::ranges::find(waiting_, pass, &WaitingPass::number);
  if (called != waiting_.end()) called->is_called = true;
  release_left_out(open);
  // Those behind this stage can have begun as many backward passes only.
  const int64_t stays = all ? 0 : behind_;
  while (static_cast<int64_t>(waiting_.size()) > stays) do_oldest();
}

void PassSchedule::do_oldest() {
  const WaitingPass oldest = std::move(waiting_.front());
  waiting_.pop_front();
  if (!oldest.is_left_out && !oldest.output.requires_grad()) return;
  const rpc::Values letter = letters_.receive(stage_ + 1, gradient_key(oldest.number));
  const std::string here = fmt::format("stage {}", stage_);
  if (!letter.tensors.empty()) {
    if (oldest.is_left_out) refuse_disagreement(oldest.number, "the last stage", here);
    torch::autograd::backward({oldest.output}, {letter.tensors.front()});
    return;
  }
  // The stage before gets the same answer, before an error ends this one.
  if (oldest.owes_gradient) letters_.send(stage_ - 1, gradient_key(oldest.number), no_gradient());
  if (oldest.is_called) refuse_disagreement(oldest.number, here, "the last stage");
}

}  // namespace phalanx::pipeline
