// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/tracked_metric.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TrackedMetric, KeepsTheBestByItsMode) {
  TrackedMetric loss("loss", Better::lower), f1("f1", Better::higher);
  EXPECT_EQ(loss.best(), std::nullopt);
  int64_t step = 0;
  for (const double value : {3, 1, 2}) {
    loss.take(value, ++step);
    f1.take(value, step);
  }
  EXPECT_EQ(loss.best(), 1);
  EXPECT_EQ(loss.best_step(), 2);
  EXPECT_EQ(f1.best(), 3);
  EXPECT_EQ(f1.best_step(), 1);
  EXPECT_FALSE(loss.take(1, 4)) << "as good is not better";
}

TEST(TrackedMetric, TakesWhatIsBetterByMoreThanTheMargin) {
  TrackedMetric loss("loss", Better::lower);
  EXPECT_TRUE(loss.take(8, 1, {.amount = 2})) << "the first is the best";
  EXPECT_FALSE(loss.take(6, 2, {.amount = 2}));
  EXPECT_TRUE(loss.take(5, 3, {.amount = 2}));
  EXPECT_EQ(loss.best(), 5) << "8 has stayed the best until then";
  EXPECT_FALSE(loss.take(4.5, 4, {.amount = 0.1, .is_relative = true})) << "a tenth of 5";
  EXPECT_TRUE(loss.take(4.4, 5, {.amount = 0.1, .is_relative = true}));
  EXPECT_TRUE(is_better(1.3, 1, Better::higher, {.amount = 0.25, .is_relative = true}));
  EXPECT_FALSE(is_better(1.2, 1, Better::higher, {.amount = 0.25, .is_relative = true}));
}

TEST(TrackedMetric, TakesNothingThatIsNotFinite) {
  TrackedMetric loss("loss", Better::lower);
  for (const double value : {kNan, kInfinity, -kInfinity}) {
    EXPECT_FALSE(loss.take(value, 1));
    EXPECT_EQ(loss.best(), std::nullopt);
  }
  EXPECT_FALSE(is_better(kNan, 1, Better::lower));
  EXPECT_FALSE(is_better(kNan, 1, Better::higher));
}

TEST(TrackedMetric, ReachesAGoal) {
  const TrackedMetric loss("loss", Better::lower), f1("f1", Better::higher);
  EXPECT_TRUE(loss.has_reached(0.5, 0.5));
  EXPECT_TRUE(loss.has_reached(0.4, 0.5));
  EXPECT_FALSE(loss.has_reached(0.6, 0.5));
  EXPECT_TRUE(f1.has_reached(0.6, 0.5));
  EXPECT_FALSE(f1.has_reached(kNan, 0.5));
}

TEST(TrackedMetric, ReadsWhatItHasWrittenAndNothingOfAnotherMetric) {
  TrackedMetric loss("loss", Better::lower);
  Json empty;
  loss.write(empty);
  EXPECT_EQ(empty.dump(), R"({"metric":"loss","mode":"min","best":null,"best_step":0})");
  loss.take(0.1, 7);
  Json state;
  loss.write(state);
  TrackedMetric same("loss", Better::lower);
  EXPECT_TRUE(same.read(state));
  EXPECT_EQ(same.best(), 0.1);
  EXPECT_EQ(same.best_step(), 7);
  EXPECT_TRUE(same.read(empty));
  EXPECT_EQ(same.best(), std::nullopt);
  TrackedMetric other("f1", Better::lower), opposite("loss", Better::higher);
  EXPECT_FALSE(other.read(state));
  EXPECT_FALSE(opposite.read(state));
  EXPECT_EQ(opposite.best(), std::nullopt);
  EXPECT_THROW(same.read(Json::parse("{}")), nlohmann::json::exception);
}

}  // namespace
}  // namespace phalanx
