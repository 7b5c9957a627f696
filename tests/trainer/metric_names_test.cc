// SPDX-License-Identifier: Apache-2.0
// A field that names a value of validations is compared with what the chosen task gives, before
// anything is launched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/schema.h"
#include "trainer/metrics/measures/class_counts.h"
#include "trainer/metrics/measures/means.h"
#include "trainer/registry/kinds.h"
#include "trainer/trainer_schema.h"

namespace phalanx::tiny {
namespace {

using ::testing::HasSubstr;

/// A task that says nothing of its values.
class Silent : public Task<Samples, Regressor> {
 public:
  struct Config {
    int64_t classes = 2;
    static void describe(config::Schema<Config>& s) {
      s.field("classes", &Config::classes, "how many classes there are").at_least(2);
    }
  };

  explicit Silent(Config config) : config_(config) {}

  std::unique_ptr<BatchSource> build_data(Phase, const BatchRequest&) override { return nullptr; }
  Loss compute_loss(Regressor&, const Samples&, const State&) override { return at::Tensor(); }

 protected:
  Config config_;
};

class Declaring : public Silent {
 public:
  using Silent::Silent;
  void declare_metrics(MetricSet& set) const override {
    set.add("seen", metrics::sum(), MeasuredIn::training);
    set.add("counts", metrics::confusion_matrix(config_.classes));
  }
};

class Listing : public Declaring {
 public:
  using Declaring::Declaring;
  static std::vector<std::string_view> metric_names() { return {"loss", "policy"}; }
};

class Deriving : public Declaring {
 public:
  using Declaring::Declaring;
  NamedValues metrics(const NamedValues&) const override { return {{"derived", 1}}; }
};

REGISTER_TASK("silent", Silent);
REGISTER_TASK("declaring", Declaring);
REGISTER_TASK("listing", Listing);
REGISTER_TASK("deriving", Deriving);

// What is wrong with keep_best of this metric, for a task of so many classes; "none".
std::string problem_of(const std::string& task, int64_t classes, const std::string& metric,
                       const std::string& more = "") {
  config::Declaration declaration("test");
  add_registered_sections(declaration);
  config::Diagnostics diagnostics;
  config::Node config = config::parse_yaml(
      "{checkpoint: {keep_best: {metric: " + metric + "}}" + more + "}", "test.yaml", diagnostics);
  config::Node chosen = config::write(Silent::Config{.classes = classes});
  chosen.set("name", config::Node::string(task));
  config.set("task", std::move(chosen));
  for (const auto& check : declaration.checks()) {
    if (auto problem = check(config)) return *problem;
  }
  return "none";
}

TEST(MetricNames, OfADeclaringTaskAreTheLossAndItsMetrics) {
  EXPECT_EQ(problem_of("declaring", 2, "loss"), "none");
  EXPECT_EQ(problem_of("declaring", 2, "counts_1_1"), "none");
  EXPECT_EQ(problem_of("declaring", 2, "seen"),
            "checkpoint.keep_best.metric: declaring gives no 'seen'; it gives loss, counts_0_0, "
            "counts_0_1, counts_1_0, counts_1_1: choose one of these");
}

TEST(MetricNames, FollowTheTasksConfig) {
  EXPECT_THAT(problem_of("declaring", 2, "counts_2_2"), HasSubstr("gives no"));
  EXPECT_EQ(problem_of("declaring", 3, "counts_2_2"), "none");
}

TEST(MetricNames, StandBesideThoseThatATaskLists) {
  EXPECT_EQ(problem_of("listing", 2, "policy"), "none");
  EXPECT_EQ(problem_of("listing", 2, "counts_0_0"), "none");
  EXPECT_THAT(problem_of("listing", 2, "value"), HasSubstr("it gives loss, policy, counts_0_0"));
}

TEST(MetricNames, AreNotKnownWhereATaskMayGiveOthers) {
  EXPECT_EQ(problem_of("deriving", 2, "derived"), "none");
  EXPECT_EQ(problem_of("silent", 2, "whatever"), "none");
}

TEST(MetricNames, AreOfSetsToo) {
  const std::string sets = ", validation: {sets: {books: [a]}}";
  EXPECT_EQ(problem_of("declaring", 2, "books/counts_0_0", sets), "none");
  EXPECT_THAT(problem_of("declaring", 2, "books/f1", sets),
              HasSubstr("or one of a set, as NAME/loss"));
}

}  // namespace
}  // namespace phalanx::tiny
