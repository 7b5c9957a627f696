// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/early_stopping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The place, from 1, of the value that ends a run; 0: none does.
int64_t ends_at(const EarlyStoppingConfig& config, const std::vector<double>& values) {
  EarlyStopping stopping(config);
  int64_t place = 0;
  for (const double value : values) {
    stopping.take(value, ++place);
    if (!stopping.reason().empty()) return place;
  }
  return 0;
}

TEST(EarlyStopping, EndsARunWhosePatienceIsOver) {
  EXPECT_EQ(ends_at({.metric = "loss"}, {5, 4, 4, 4.5, 4}), 5);
  EXPECT_EQ(ends_at({.metric = "loss"}, {5, 4, 4, 4.5, 3.9, 4, 4}), 0) << "it began again";
  EXPECT_EQ(ends_at({.metric = "loss", .patience = 1}, {5, 5}), 2);
}

TEST(EarlyStopping, GoesByTheMode) {
  EXPECT_EQ(ends_at({.metric = "f1", .mode = Better::higher, .patience = 2}, {1, 2, 3, 4}), 0);
  EXPECT_EQ(ends_at({.metric = "f1", .mode = Better::higher, .patience = 2}, {4, 3, 2}), 3);
}

TEST(EarlyStopping, TakesNoNoticeOfSmallProgress) {
  const EarlyStoppingConfig config{.metric = "loss", .patience = 2, .min_delta = 0.5};
  EXPECT_EQ(ends_at(config, {5, 4.75, 4.5}), 3) << "neither is better than 5 by more than 0.5";
  EXPECT_EQ(ends_at(config, {5, 4.75, 4.25}), 0);
}

TEST(EarlyStopping, EndsAtTheThreshold) {
  EXPECT_EQ(ends_at({.metric = "loss", .threshold = 2}, {5, 3, 2, 1}), 3);
  EXPECT_EQ(ends_at({.metric = "f1", .mode = Better::higher, .threshold = 0.9}, {0.5, 0.95}), 2);
}

TEST(EarlyStopping, EndsAtWhatIsNoNumber) {
  EXPECT_EQ(ends_at({.metric = "loss"}, {5, kNan}), 2);
  EXPECT_EQ(ends_at({.metric = "loss"}, {kInfinity}), 1);
  EXPECT_EQ(ends_at({.metric = "loss", .check_finite = false}, {5, kNan, 4, kInfinity, 3}), 0);
  EXPECT_EQ(ends_at({.metric = "loss", .patience = 2, .check_finite = false}, {kNan, kNan}), 2);
}

TEST(EarlyStopping, SaysWhy) {
  EarlyStopping stopping({.metric = "loss", .patience = 2});
  for (const int64_t step : {10, 20, 30}) stopping.take(step == 10 ? 2.5 : 3, step);
  EXPECT_EQ(stopping.reason(),
            "loss has got no better in 2 validations: the best was 2.5 at step 10 "
            "(early_stopping.patience 2)");
  EarlyStopping close({.metric = "loss", .patience = 1, .min_delta = 0.5});
  for (const int64_t step : {10, 20}) close.take(step == 10 ? 2.5 : 2.25, step);
  EXPECT_EQ(close.reason(),
            "loss has got no better by more than 0.5 (early_stopping.min_delta) in 1 validation: "
            "the best was 2.5 at step 10 (early_stopping.patience 1)");
  EarlyStopping reached({.metric = "loss", .threshold = 1});
  reached.take(0.5, 1);
  EXPECT_EQ(reached.reason(), "loss 0.5 has reached early_stopping.threshold, 1");
  EarlyStopping broken({.metric = "loss"});
  broken.take(kNan, 1);
  EXPECT_EQ(broken.reason(), "loss is nan (early_stopping.check_finite)");
}

// Whatever the place of the cut, the same value ends the run.
TEST(EarlyStopping, GoesOnFromWhatWasKept) {
  const EarlyStoppingConfig config{.metric = "loss", .patience = 3, .check_finite = false};
  const std::vector<double> values{5, kNan, 4, 4.5, kInfinity, 3.9, 4, 1e300, 4};
  for (size_t cut = 0; cut <= values.size(); ++cut) {
    EarlyStopping before(config);
    for (size_t i = 0; i < cut; ++i) before.take(values[i], static_cast<int64_t>(i));
    EarlyStopping after(config);
    after.restore(before.json());
    EXPECT_EQ(after.reason(), before.reason());
    EXPECT_EQ(after.json(), before.json());
    for (size_t i = cut; i < values.size(); ++i) after.take(values[i], static_cast<int64_t>(i));
    EXPECT_THAT(after.reason(), HasSubstr("the best was 3.9 at step 5")) << cut;
  }
}

TEST(EarlyStopping, GoesByTheConfigOfTheResume) {
  EarlyStopping before({.metric = "loss", .patience = 2});
  for (const double value : {2.0, 3.0, 3.0}) before.take(value, 1);
  EXPECT_NE(before.reason(), "");
  EarlyStopping patient({.metric = "loss", .patience = 3});
  patient.restore(before.json());
  EXPECT_EQ(patient.reason(), "");
  patient.take(3, 2);
  EXPECT_NE(patient.reason(), "") << "it had waited for two";
  EarlyStopping other({.metric = "accuracy", .patience = 1});
  other.restore(before.json());
  EXPECT_EQ(other.reason(), "") << "of another metric nothing is known";
}

TEST(EarlyStopping, RefusesAStateThatIsNone) {
  EarlyStopping stopping({.metric = "loss"});
  EXPECT_THROW(stopping.restore(""), UserError);
  EXPECT_THROW(stopping.restore(R"({"metric":"loss"})"), UserError);
}

}  // namespace
}  // namespace phalanx
