// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/served_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace phalanx::parameter_server {
namespace {

using std::chrono::milliseconds;

at::Tensor filled(double value) { return at::full({2}, value, at::kDouble); }

TEST(ServedParameters, AnswerAPullOnceItsVersionIsThere) {
  ServedParameters served({filled(1)}, {filled(7)}, {.ranks = 2});
  const rpc::Function pull = served.pull();
  const rpc::Future first = pull({.text = "1"});
  const rpc::Future second = pull({.text = "2"});
  EXPECT_FALSE(first.is_done());
  served.publish(1);
  ASSERT_TRUE(first.is_done());
  EXPECT_FALSE(second.is_done());
  EXPECT_TRUE(first.wait().tensors[0].equal(filled(1)));
  EXPECT_TRUE(first.wait().tensors[1].equal(filled(7)));
  served.publish(2);
  EXPECT_TRUE(second.is_done());
  EXPECT_TRUE(pull({.text = "2"}).is_done());
}

TEST(ServedParameters, TakeTheMeanOverAllRanksInTheirOrder) {
  ServedParameters served({filled(0), filled(0)}, {}, {.ranks = 2});
  const rpc::Function push = served.push();
  push(pushed(1, 1, {filled(4), filled(1)}));
  push(pushed(1, 2, {filled(100), at::Tensor()}));
  EXPECT_FALSE(served.wait(1, milliseconds(0)));
  EXPECT_EQ(served.missing(1), (std::vector<int64_t>{0}));
  EXPECT_EQ(served.missing(3), (std::vector<int64_t>{0, 1}));
  push(pushed(0, 1, {filled(2), at::Tensor()}));
  ASSERT_TRUE(served.wait(1, milliseconds(0)));
  const Gradients means = served.take(1);
  EXPECT_TRUE(means[0].equal(filled(3)));
  EXPECT_TRUE(means[1].equal(filled(0.5)));
  EXPECT_FALSE(served.wait(2, milliseconds(0)));
}

TEST(ServedParameters, LeaveAParameterWithoutAGradientAlone) {
  ServedParameters served({filled(0)}, {}, {.ranks = 1});
  served.push()(pushed(0, 1, {at::Tensor()}));
  EXPECT_FALSE(served.take(1)[0].defined());
}

TEST(ServedParameters, WithoutRoundsTakeWhatHasCome) {
  at::Tensor parameter = filled(1);
  ServedParameters served({parameter}, {}, {.ranks = 2, .synchronous = false});
  served.push()(pushed(1, 1, {filled(2)}));
  served.push()(pushed(1, 2, {filled(4)}));
  EXPECT_TRUE(served.wait(1, milliseconds(0)));
  EXPECT_TRUE(served.take(1)[0].equal(filled(3)));
  EXPECT_FALSE(served.take(2)[0].defined());
  served.publish(1);
  parameter.add_(5);
  // The newest values that were published, whatever version is asked for.
  EXPECT_TRUE(served.pull()({.text = "9"}).wait().tensors[0].equal(filled(1)));
}

TEST(ServedParameters, RefuseGradientsOfOtherParameters) {
  ServedParameters served({filled(1)}, {}, {.ranks = 1});
  EXPECT_THROW(served.push()(pushed(0, 1, {filled(1), filled(2)})), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx::parameter_server
