// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/metric_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "trainer/api/metric.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

class Named : public Metric {
 public:
  explicit Named(std::vector<std::string> names) : names_(std::move(names)) {}

  std::vector<std::string> names() const override { return names_; }
  MetricPart measure(const MetricInputs&) const override { return {}; }
  std::vector<double> values(const MetricTotals&) const override { return {}; }

 private:
  std::vector<std::string> names_;
};

std::shared_ptr<const Metric> named(std::vector<std::string> names = {""}) {
  return std::make_shared<Named>(std::move(names));
}

TEST(MetricSet, NamesTheValuesOfEachPhase) {
  MetricSet set;
  set.add("all", named());
  set.add("trained", named(), MeasuredIn::training);
  set.add("two", named({"low", ""}), MeasuredIn::validation);
  EXPECT_THAT(set.value_names(Phase::train), ElementsAre("all", "trained"));
  EXPECT_THAT(set.value_names(Phase::validate), ElementsAre("all", "two_low", "two"));
  EXPECT_THAT(set.value_names(Phase::predict), ElementsAre());
}

TEST(MetricSet, RefusesNamesThatAreNone) {
  MetricSet set;
  for (const char* const name : {"", "books/f1", "f 1", "f1\n"}) {
    EXPECT_THROW(set.add(name, named()), std::invalid_argument) << name;
  }
  EXPECT_THROW(set.add("f1", nullptr), std::invalid_argument);
  EXPECT_TRUE(set.entries().empty());
}

TEST(MetricSet, RefusesNamesOfOtherValues) {
  MetricSet set;
  set.add("f1", named());
  set.add("two", named({"low", "high"}));
  EXPECT_THROW(set.add("f1", named({"of_its_own"})), std::invalid_argument);
  EXPECT_THROW(set.add("two_low", named()), std::invalid_argument);
  EXPECT_THROW(set.add("loss", named()), std::invalid_argument);
  EXPECT_THROW(set.add("step", named({"seconds"})), std::invalid_argument);
  EXPECT_EQ(set.entries().size(), 2);
}

}  // namespace
}  // namespace phalanx
