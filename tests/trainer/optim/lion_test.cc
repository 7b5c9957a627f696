// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/optimizer.h"

namespace phalanx {
namespace {

double sign(double value) { return value > 0 ? 1 : (value < 0 ? -1 : 0); }

TEST(Lion, FollowsAlgorithm2OfItsPaper) {
  const double lr = 0.01;
  double expected = 0.5;
  double momentum = 0;
  const at::Tensor weight = at::tensor({expected}, at::kDouble).requires_grad_();
  const auto lion = make_registered<Optimizer>("lion", "{betas: [0.9, 0.99], weight_decay: 0.1}");
  lion->bind({{.label = "decay", .weight_decay = true, .parameters = {{"w", weight}}}});
  for (int step = 1; step <= 20; ++step) {
    const double gradient = std::sin(1.7 * step);
    weight.mutable_grad() = at::tensor({gradient}, at::kDouble);
    lion->step(lr);
    expected -= lr * (sign(0.9 * momentum + 0.1 * gradient) + 0.1 * expected);
    momentum = 0.99 * momentum + 0.01 * gradient;
    EXPECT_NEAR(weight.item().toDouble(), expected, 1e-13) << "at step " << step;
  }
  const auto state = lion->state();
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].name, "w.exp_avg");
  EXPECT_NEAR(state[0].local.item().toDouble(), momentum, 1e-13);
}

TEST(Lion, LeavesAloneWhatHasNoGradientOrDoesNotDecay) {
  const at::Tensor idle = at::tensor({1.0}, at::kDouble).requires_grad_();
  const at::Tensor norm = at::tensor({1.0}, at::kDouble).requires_grad_();
  const auto lion = make_registered<Optimizer>("lion", "{weight_decay: 0.5}");
  lion->bind({{.label = "decay", .weight_decay = true, .parameters = {{"idle", idle}}},
              {.label = "no decay", .weight_decay = false, .parameters = {{"norm", norm}}}});
  norm.mutable_grad() = at::tensor({0.0}, at::kDouble);
  lion->step(0.1);
  EXPECT_EQ(idle.item().toDouble(), 1.0);
  EXPECT_EQ(norm.item().toDouble(), 1.0);
}

}  // namespace
}  // namespace phalanx
