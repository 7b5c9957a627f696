// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/served_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
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
  // The newest values that were published, which the optimizer does not move meanwhile.
  EXPECT_TRUE(served.pull()({.text = "1"}).wait().tensors[0].equal(filled(1)));
}

TEST(ServedParameters, WithoutRoundsWaitForTheVersionThatIsAskedFor) {
  at::Tensor parameter = filled(1);
  ServedParameters served({parameter}, {}, {.ranks = 2, .synchronous = false});
  served.publish(1);
  const rpc::Future given = served.pull()({.text = "2"});
  EXPECT_FALSE(given.is_done());
  parameter.add_(5);
  served.publish(2);
  ASSERT_TRUE(given.is_done());
  EXPECT_TRUE(given.wait().tensors[0].equal(filled(6)));
}

TEST(ServedParameters, DropGradientsOfWeightsThatWereSetBack) {
  ServedParameters served({filled(1)}, {}, {.ranks = 2, .synchronous = false});
  served.push()(pushed(1, 1, {filled(2)}));
  served.drop();
  EXPECT_FALSE(served.take(1)[0].defined());
}

TEST(ServedParameters, TakeTheRowsOfASparseGradient) {
  ServedParameters served({at::zeros({4, 2}, at::kDouble)}, {}, {.ranks = 2});
  const at::Tensor rows = at::tensor({3, 1, 3}, at::kLong).unsqueeze(0);
  const at::Tensor values = at::ones({3, 2}, at::kDouble);
  const rpc::Values sent = pushed(0, 1, {at::sparse_coo_tensor(rows, values, {4, 2})});
  ASSERT_EQ(sent.tensors.size(), 2U);
  EXPECT_EQ(sent.tensors[1].size(0), 2);  // the rows that were looked up, each once
  served.push()(sent);
  served.push()(pushed(1, 1, {at::full({4, 2}, 4, at::kDouble)}));
  ASSERT_TRUE(served.wait(1, milliseconds(0)));
  const at::Tensor mean = served.take(1)[0];
  EXPECT_FALSE(mean.is_sparse());
  const at::Tensor expected = at::full({4, 2}, 2, at::kDouble);
  expected[1] += 0.5;
  expected[3] += 1;
  EXPECT_TRUE(mean.equal(expected));
}

TEST(ServedParameters, RefuseGradientsOfOtherParameters) {
  ServedParameters served({filled(1)}, {}, {.ranks = 1});
  EXPECT_THROW(served.push()(pushed(0, 1, {filled(1), filled(2)})), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx::parameter_server
