// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/schedule_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kLr = 1e-3;

/// A config as it is once it is resolved, with defaults and types.
config::Node config_of(const std::string& schedule) {
  config::Declaration declaration("test");
  config::Choice choice = registered_choice<LrScheduler>();
  declaration.add_choice("lr_scheduler", std::move(choice));
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml("{lr_scheduler: " + schedule + "}", "test", diagnostics);
  config::Node resolved = config::resolve(declaration, std::move(tree), diagnostics);
  diagnostics.throw_if_any();
  return resolved;
}

TEST(LongWarmup, IsToldWithNumbersAndTheField) {
  EXPECT_EQ(long_warmup(config_of("{name: cosine, warmup_steps: 700}"), kLr, 20),
            "the run has 20 steps, and the warm-up 700: the learning rate ends at 2.86e-05 and "
            "never reaches optimizer.lr, 0.001; lower lr_scheduler.warmup_steps");
  EXPECT_EQ(long_warmup(config_of("{name: cosine, warmup_steps: 20}"), kLr, 20), "");
  EXPECT_EQ(long_warmup(config_of("one_cycle"), kLr, 20), "");
}

TEST(LongWarmup, OfAChainIsItsFirstSchedules) {
  const config::Node chain = config_of(
      "{name: chain, schedules: [{name: constant, warmup_steps: 50}, cosine], milestones: [50]}");
  EXPECT_THAT(long_warmup(chain, kLr, 20),
              AllOf(HasSubstr("the warm-up 50"),
                    HasSubstr("lower lr_scheduler.schedules[0].warmup_steps")));
  EXPECT_EQ(long_warmup(chain, kLr, 50), "");
  const config::Node left_early = config_of(
      "{name: chain, schedules: [{name: constant, warmup_steps: 1000}, constant], milestones: "
      "[10]}");
  EXPECT_EQ(long_warmup(left_early, kLr, 500), "");
}

// The case of 12 steps that become 18.
TEST(MovedHorizon, IsToldWithBothRatesAndTheField) {
  const config::Node cosine = config_of("{name: cosine, warmup_steps: 2, min_lr_ratio: 0.1}");
  EXPECT_EQ(moved_horizon(cosine, kLr, {.earlier_steps = 12, .total_steps = 18, .step = 12}),
            "the run has 18 steps now, and had 12; its schedule follows: the learning rate was "
            "0.0001 in step 12 and is 0.0003 in step 13; lr_scheduler.decay_steps=12 keeps the "
            "earlier schedule");
}

TEST(MovedHorizon, IsNotToldWhereTheRateStays) {
  const ChangedLength longer{.earlier_steps = 12, .total_steps = 18, .step = 12};
  EXPECT_EQ(moved_horizon(config_of("cosine"), kLr, {18, 18, 12}), "");
  EXPECT_EQ(moved_horizon(config_of("{name: cosine, decay_steps: 12}"), kLr, longer), "");
  EXPECT_EQ(moved_horizon(config_of("constant"), kLr, longer), "");
  const config::Node plateau = config_of("{name: warmup_stable_decay, cooldown_steps: 4}");
  EXPECT_EQ(moved_horizon(plateau, kLr, {12, 18, 7}), "") << "the decay has not begun";
  EXPECT_THAT(moved_horizon(plateau, kLr, {12, 18, 10}), HasSubstr("is 0.001 in step 11"));
}

constexpr const char* kAdamW = "{optimizer: {name: adamw, lr: 0.001}}";

/// A resolved config of so many steps, with one optimizer, or several.
config::Node run_of(const TrainingConfig& training, const std::string& schedule,
                    const std::string& optimizers = kAdamW) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(optimizers, "test", diagnostics);
  diagnostics.throw_if_any();
  tree.set("training", config::write(training));
  tree.set("lr_scheduler", *config_of(schedule).find("lr_scheduler"));
  return tree;
}

config::Node run_of(int64_t steps, const std::string& schedule,
                    const std::string& optimizers = kAdamW) {
  return run_of(TrainingConfig{.max_steps = steps}, schedule, optimizers);
}

TEST(MovedHorizon, OfTwoConfigsIsToldAtTheRunsStepOrItsEnd) {
  const std::string cosine = "{name: cosine, warmup_steps: 2, min_lr_ratio: 0.1}";
  const config::Node earlier = run_of(12, cosine);
  const config::Node now = run_of(18, cosine);
  const std::string told =
      "the run has 18 steps now, and had 12; its schedule follows: the learning rate was 0.0001 in "
      "step 12 and is 0.0003 in step 13; lr_scheduler.decay_steps=12 keeps the earlier schedule";
  EXPECT_THAT(moved_horizons(earlier, now, std::nullopt), ElementsAre(told));
  EXPECT_THAT(moved_horizons(earlier, now, 12), ElementsAre(told));
  config::Node without_others = now;
  without_others.set("optimizers", config::Node::map());
  EXPECT_THAT(moved_horizons(earlier, without_others, 12), ElementsAre(told))
      << "as a resolved config has it";
  EXPECT_THAT(moved_horizons(earlier, now, 6), ElementsAre(HasSubstr("in step 6 and is")));
  EXPECT_THAT(moved_horizons(earlier, earlier, std::nullopt), IsEmpty());
  EXPECT_THAT(moved_horizons(now, earlier, 18), IsEmpty()) << "nothing is left to train";
}

TEST(MovedHorizon, OfTwoConfigsIsNotToldWhereMoreDiffersOrTheDataCounts) {
  const config::Node earlier = run_of(12, "cosine");
  const auto told = [&](const config::Node& now) {
    return moved_horizons(earlier, now, std::nullopt);
  };
  EXPECT_THAT(told(run_of(18, "cosine")), SizeIs(1)) << "the length alone";
  EXPECT_THAT(told(run_of(18, "constant")), IsEmpty());
  EXPECT_THAT(told(run_of(TrainingConfig{.max_steps = 18, .max_epochs = 2}, "cosine")), IsEmpty());
  EXPECT_THAT(told(run_of(18, "cosine", "{optimizer: {name: adamw, lr: 0.1}}")), IsEmpty());
  TrainingConfig by_epoch{.max_steps = 18};
  by_epoch.step_lr_interval = LrInterval::epoch;
  EXPECT_THAT(told(run_of(by_epoch, "cosine")), IsEmpty());
  const std::string kept = "{name: cosine, decay_steps: 12}";
  EXPECT_THAT(moved_horizons(run_of(12, kept), run_of(18, kept), std::nullopt), IsEmpty());
}

TEST(MovedHorizon, OfTwoConfigsWithNamedOptimizersNamesEachThatMoves) {
  const auto run_of_three = [](int64_t steps) {
    config::Node run = run_of(steps, "cosine",
                              "{optimizers: {a: {lr: 0.5}, b: {lr: 0.25, lr_scheduler: null}, "
                              "c: {lr: 0.125}}}");
    config::Node optimizers = *run.find("optimizers");
    const auto set_schedule = [&](const char* name, const char* schedule) {
      config::Node section = *optimizers.find(name);
      section.set("lr_scheduler", *config_of(schedule).find("lr_scheduler"));
      optimizers.set(name, std::move(section));
    };
    set_schedule("a", "constant");
    set_schedule("c", "linear");
    run.set("optimizers", std::move(optimizers));
    return run;
  };
  EXPECT_THAT(moved_horizons(run_of_three(12), run_of_three(18), 6),
              ElementsAre(AllOf(HasSubstr("the learning rate of optimizers.b was 0.125 in step 6"),
                                HasSubstr("; lr_scheduler.decay_steps=12 keeps")),
                          AllOf(HasSubstr("the learning rate of optimizers.c was 0.0625 in step 6"),
                                HasSubstr("; optimizers.c.lr_scheduler.decay_steps=12 keeps"))));
}

TEST(ScheduleNotes, OfATrainerWithoutAScheduleInItsConfigAreNone) {
  EXPECT_EQ(long_warmup(config::Node::map(), kLr, 20), "");
  EXPECT_EQ(moved_horizon(config::Node::map(), kLr, {12, 18, 12}), "");
}

TEST(WithLimitsOf, TakesThoseOfAnotherConfigAndNothingElse) {
  TrainingConfig now;
  now.max_steps = 18;
  now.max_samples = 7;
  now.batch_size = 5;
  config::Node resolved = config::Node::map();
  resolved.set("training", config::write(now));
  const config::Node earlier = config::parse_json(
      R"({"training": {"max_steps": 12, "max_epochs": null, "batch_size": 9}})", "test");
  const TrainingConfig merged = with_limits_of(resolved, earlier);
  EXPECT_EQ(merged.max_steps, 12);
  EXPECT_EQ(merged.max_epochs, std::nullopt);
  EXPECT_EQ(merged.max_samples, std::nullopt) << "which an earlier version may lack";
  EXPECT_EQ(merged.batch_size, 5);
  EXPECT_EQ(with_limits_of(resolved, config::parse_json("{}", "test")).max_steps, std::nullopt);
}

}  // namespace
}  // namespace phalanx
