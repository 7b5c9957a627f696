// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/parallel/pass_cases.h"

#include <ATen/core/grad_mode.h>

namespace phalanx {
namespace {

/// Runs the pass of one batch.
at::Tensor pass(const PassRunner& runner, const LossOf& loss, int64_t i, bool is_whole = true,
                bool synchronize = true) {
  return runner.forward([&] { return loss(i, is_whole); }, synchronize);
}

void keep_graph(const at::Tensor& loss) { loss.backward({}, /*retain_graph=*/true); }

void sum_of_two(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  const at::Tensor second = pass(runner, loss, 1);
  first.add(second, 0.5).backward();
}

void two_in_order(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  const at::Tensor second = pass(runner, loss, 1);
  first.backward();
  second.backward();
}

void two_in_reverse(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  const at::Tensor second = pass(runner, loss, 1);
  second.backward();
  first.backward();
}

void without_backward(const PassRunner& runner, const LossOf& loss) {
  pass(runner, loss, 0).detach();
  pass(runner, loss, 1).backward();
}

void kept_without_backward(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor kept = pass(runner, loss, 0);
  pass(runner, loss, 1).backward();
}

void evaluation_between(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  runner.use([&] {
    const at::NoGradGuard no_grad;
    loss(1, true);
  });
  first.backward();
}

void pass_without_gradients_between(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  const at::Tensor factor = [&] {
    const at::NoGradGuard no_grad;
    return pass(runner, loss, 1);
  }();
  first.mul(factor).backward();
}

void retained(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  keep_graph(first);
  first.square().backward();
}

void retained_then_summed(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0);
  keep_graph(first);
  const at::Tensor second = pass(runner, loss, 1);
  first.add(second).backward();
}

void twice_within_one(const PassRunner& runner, const LossOf& loss) {
  runner.forward([&] { return loss(0, true).mul(loss(1, true)); }, true).backward();
}

void parts_left_out(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor whole = pass(runner, loss, 0);
  const at::Tensor part = pass(runner, loss, 1, /*is_whole=*/false);
  part.backward();
  whole.mul(part.detach()).backward();
}

void nowhere_whole(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0, /*is_whole=*/false);
  const at::Tensor second = pass(runner, loss, 1, /*is_whole=*/false);
  first.add(second).backward();
}

void accumulated(const PassRunner& runner, const LossOf& loss) {
  pass(runner, loss, 0, true, /*synchronize=*/false).backward();
  const at::Tensor second = pass(runner, loss, 1, true, /*synchronize=*/false);
  const at::Tensor third = pass(runner, loss, 2, true, /*synchronize=*/false);
  second.add(third).backward();
  pass(runner, loss, 3).backward();
}

void accumulated_apart(const PassRunner& runner, const LossOf& loss) {
  const at::Tensor first = pass(runner, loss, 0, true, /*synchronize=*/false);
  keep_graph(first);
  const at::Tensor second = pass(runner, loss, 1);
  second.backward();
  first.backward();
}

}  // namespace

std::vector<PassCase> pass_cases() {
  return {
      {"the sum of two passes", sum_of_two},
      {"two passes, in order", two_in_order},
      {"two passes, in reverse", two_in_reverse},
      {"a pass without a backward one", without_backward},
      {"a pass without a backward one whose graph is kept", kept_without_backward},
      {"an evaluation between", evaluation_between},
      {"a pass without gradients between", pass_without_gradients_between},
      {"two backward passes of one graph", retained},
      {"a graph twice, the second time with another", retained_then_summed},
      {"the model twice within a pass", twice_within_one},
      {"two passes of which one leaves a unit out", parts_left_out},
      {"two passes that leave a unit out", nowhere_whole},
      {"two passes among those that accumulate", accumulated},
      {"a graph twice, once without a reduction", accumulated_apart},
  };
}

PassRunner plain_runner() {
  return {.forward = [](const auto& pass, bool) { return pass(); },
          .use = [](const auto& action) { action(); }};
}

}  // namespace phalanx
