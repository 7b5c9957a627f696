// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/last_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace phalanx {
namespace {

using ::testing::EndsWith;

TEST(LastMetrics, AreThoseOfBothPhases) {
  LastMetrics metrics({"f1", "auc"});
  EXPECT_EQ(metrics.text(), "");
  metrics.take_step({{"accuracy", 0.5}});
  EXPECT_EQ(metrics.text(), "train accuracy 0.5");
  metrics.take_step({});  // A step that fed none.
  metrics.take_validation(
      {{"loss", 2}, {"f1", 0.123456}, {"auc", -std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(metrics.text(), "train accuracy 0.5; validation f1 0.1235, auc nan");
  metrics.take_validation({{"loss", 2}});
  EXPECT_EQ(metrics.text(), "train accuracy 0.5");
}

TEST(LastMetrics, ShowTheFirstOfMany) {
  NamedValues many;
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) {
    names.push_back("m" + std::to_string(i));
    many.emplace_back(names.back(), i);
  }
  LastMetrics metrics(names);
  metrics.take_validation(many);
  EXPECT_THAT(metrics.text(), EndsWith("m6 6, m7 7 and 2 more"));
}

}  // namespace
}  // namespace phalanx
