// SPDX-License-Identifier: Apache-2.0
#include "trainer/averages/weight_averages.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "tests/tensors.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

// A whole tensor and the empty part of another, as a rank may hold it.
std::vector<ShardedTensorView> views(const at::Tensor& weight) {
  ShardedTensorView empty = whole_tensor("empty", tensors::zeros({0}));
  empty.shape = {5};
  return {whole_tensor("weight", weight), empty};
}

double value_of(const ShardedTensorView& view) { return view.local.item().toDouble(); }

class Averaged : public ::testing::Test {
 protected:
  void take(WeightAverages& averages, double value) const {
    weight_.fill_(value);
    averages.update();
  }

  at::Tensor weight_ = tensors::zeros({1}, at::kDouble);
};

TEST_F(Averaged, MoveExponentiallyFromTheFirstWeights) {
  WeightAverages averages(AverageMethod::exponential, 0.75, views(weight_));
  take(averages, 8);
  EXPECT_EQ(value_of(averages.tensors()[0]), 8);
  take(averages, 16);
  EXPECT_EQ(value_of(averages.tensors()[0]), 10);
  take(averages, 2);
  EXPECT_EQ(value_of(averages.tensors()[0]), 8);
  EXPECT_EQ(averages.updates(), 3);
}

TEST_F(Averaged, CountAllWeightsAlike) {
  WeightAverages averages(AverageMethod::equal, 0, views(weight_));
  for (const double value : {8.0, 16.0, 0.0, 4.0}) take(averages, value);
  EXPECT_EQ(value_of(averages.tensors()[0]), 7);
}

TEST_F(Averaged, ChangePlacesWithTheWeightsAndBackToTheBit) {
  at::Tensor weight = tensors::randn({3, 5});
  WeightAverages averages(AverageMethod::exponential, 0.9, views(weight));
  averages.update();
  weight.copy_(tensors::randn({3, 5}));
  averages.update();
  const at::Tensor own = weight.clone();
  const at::Tensor average = averages.tensors()[0].local.clone();
  averages.exchange();
  EXPECT_TRUE(weight.equal(average));
  averages.exchange();
  EXPECT_TRUE(weight.equal(own));
  EXPECT_TRUE(averages.tensors()[0].local.equal(average));
}

TEST_F(Averaged, LeaveTheWeightsWhereTheyAreBeforeTheFirst) {
  WeightAverages averages(AverageMethod::exponential, 0.9, views(weight_));
  weight_.fill_(3);
  averages.exchange();
  EXPECT_EQ(weight_.item().toDouble(), 3);
}

TEST_F(Averaged, GoOnFromWhatWasKept) {
  WeightAverages averages(AverageMethod::equal, 0, views(weight_));
  take(averages, 8);
  take(averages, 16);
  WeightAverages other(AverageMethod::equal, 0, views(weight_));
  other.tensors()[0].local.copy_(averages.tensors()[0].local);
  other.restore(averages.json());
  EXPECT_EQ(updates_in(averages.json()), 2);
  take(other, 0);
  EXPECT_EQ(value_of(other.tensors()[0]), 8);
}

TEST_F(Averaged, BeginAnewWithAnotherMethod) {
  WeightAverages averages(AverageMethod::exponential, 0.5, views(weight_));
  take(averages, 8);
  take(averages, 16);
  WeightAverages other(AverageMethod::equal, 0, views(weight_));
  other.restore(averages.json());
  take(other, 6);
  EXPECT_EQ(value_of(other.tensors()[0]), 6);
}

TEST_F(Averaged, RefuseValuesOfAnotherProgram) {
  WeightAverages averages(AverageMethod::equal, 0, views(weight_));
  EXPECT_THROW(averages.restore(""), UserError);
  EXPECT_THROW(averages.restore("{}"), UserError);
  EXPECT_THROW(averages.restore(R"({"updates":"2"})"), UserError);
  EXPECT_THROW(averages.restore(R"({"updates":-1})"), UserError);
}

}  // namespace
}  // namespace phalanx
