// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/never_acts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

config::Node config_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(yaml, "my.yaml", diagnostics);
  diagnostics.throw_if_any();
  return tree;
}

// The lines of a run of 20 steps, five an epoch.
std::vector<std::string> lines_of(const std::string& yaml, RunLength run = {}) {
  run.steps = 20;
  run.steps_per_epoch = 5;
  return never_acting(config_of(yaml), run);
}

// The same with validations.
std::vector<std::string> lines_with(const std::string& validation, const std::string& more,
                                    const RunLength& run = {}) {
  return lines_of("validation: {" + validation + "}\n" + more, run);
}

TEST(NeverActs, SaysPlaceNumbersAndWhatToDo) {
  EXPECT_THAT(lines_of("\nlogging: {every_n_steps: 21}"),
              ElementsAre("logging.every_n_steps (my.yaml:2) never acts: the run has 20 steps, and "
                          "it is 21: only the first and the last step are logged; lower it"));
  EXPECT_THAT(lines_of("logging: {every_n_steps: 20}"), IsEmpty());
  EXPECT_THAT(lines_of("checkpoint: {keep_every_n_steps: 30}"),
              ElementsAre(StartsWith("checkpoint.keep_every_n_steps (my.yaml:1) never acts: ")));
  EXPECT_THAT(lines_of("checkpoint: {save_every_n_steps: 30}"), IsEmpty())
      << "the end of the run saves";
}

TEST(NeverActs, SaysNothingOfDefaults) {
  config::Node tree = config::Node::map();
  config::Node logging = config::Node::map();
  logging.set("every_n_steps", config::Node::integer(100));
  tree.set("logging", logging);
  EXPECT_THAT(never_acting(tree, {.steps = 20}), IsEmpty());
  // A run's own config gives them all.
  const std::string whole = "# A run's whole config, and where each value came from.\n";
  EXPECT_THAT(never_acting(config_of(whole + "logging: {every_n_steps: 10}"), {.steps = 5}),
              IsEmpty());
  EXPECT_THAT(never_acting(config_of("logging: {every_n_steps: 10}"), {.steps = 5}),
              ElementsAre(HasSubstr("the run has 5 steps, and it is 10")));
}

TEST(NeverActs, AWindowThatIsNeverFull) {
  EXPECT_THAT(lines_of("guards: {on_spike: skip, window: 20}"),
              ElementsAre(AllOf(StartsWith("guards.window (my.yaml:1) never acts: "),
                                HasSubstr("before there are 20 good ones"))));
  EXPECT_THAT(lines_of("guards: {on_spike: skip, window: 19}"), IsEmpty());
  EXPECT_THAT(lines_of("guards: {on_spike: none, window: 50}"), IsEmpty());
}

TEST(NeverActs, APatienceBeyondTheValidations) {
  const std::string stopping = "early_stopping: {metric: loss, patience: 4}";
  EXPECT_THAT(lines_with("every_n_steps: 5, at_end: true", stopping),
              ElementsAre("early_stopping.patience (my.yaml:2) never acts: the run has 4 "
                          "validations, and a patience of 4 needs 5 at least: the first value is "
                          "the best so far; validate more often (validation.every_n_steps), or "
                          "lower early_stopping.patience"));
  EXPECT_THAT(lines_with("every_n_steps: 5, at_start: true", stopping), IsEmpty());
  EXPECT_THAT(lines_with("every_n_steps: 4", stopping), IsEmpty());
  EXPECT_THAT(lines_with("every_n_steps: 5, every_n_epochs: 1", stopping),
              ElementsAre(HasSubstr("4 validations")))
      << "the same steps";
  EXPECT_THAT(lines_with("every_n_steps: 4, every_n_epochs: 2", stopping), IsEmpty())
      << "of steps 4, 8, 10, 12, 16 and 20";
  EXPECT_THAT(lines_with("every_n_steps: 6, at_end: true", stopping),
              ElementsAre(HasSubstr("4 validations")));
  EXPECT_THAT(lines_with("every_n_epochs: 1", stopping), ElementsAre(HasSubstr("4 validations")));
  EXPECT_THAT(
      lines_with("at_end: true", "early_stopping: {metric: loss, patience: 4, threshold: 1}"),
      IsEmpty())
      << "the threshold ends it";
  EXPECT_THAT(lines_with("at_end: true", stopping, {.is_new = false}), IsEmpty())
      << "earlier starts may have validated more often";
}

TEST(NeverActs, APlateauWhoseRateStays) {
  const std::string plateau = "lr_scheduler: {name: plateau, metric: loss, patience: 2}";
  EXPECT_THAT(lines_with("every_n_steps: 7", plateau),
              ElementsAre(AllOf(StartsWith("lr_scheduler.patience (my.yaml:2) never acts: the run "
                                           "has 2 validations, and a patience of 2 needs 4"))));
  EXPECT_THAT(lines_with("every_n_steps: 5", plateau), IsEmpty());
  EXPECT_THAT(
      lines_with("at_end: true",
                 "optimizers: {a: {lr_scheduler: {name: plateau, metric: loss, patience: 2}}}"),
      ElementsAre(StartsWith("optimizers.a.lr_scheduler.patience (my.yaml:2)")));
}

TEST(NeverActs, WhatWaitsForValidationsThatDoNotCome) {
  EXPECT_THAT(
      lines_with("every_n_steps: 30",
                 "checkpoint: {keep_best: {metric: loss}}\nearly_stopping: {metric: loss}"),
      ElementsAre("validation.every_n_steps (my.yaml:1) never acts: the run has 20 steps, and ends "
                  "before its first validation; lower it, or set validation.at_end",
                  StartsWith("checkpoint.keep_best (my.yaml:2) never acts: "),
                  StartsWith("early_stopping.metric (my.yaml:3) never acts: ")));
  EXPECT_THAT(lines_with("every_n_epochs: 5", ""),
              ElementsAre(StartsWith("validation.every_n_epochs (my.yaml:1)")));
  EXPECT_THAT(lines_with("every_n_steps: 30, at_end: true", ""), IsEmpty());
  EXPECT_THAT(lines_with("every_n_steps: 30", "", {.can_validate = false}), IsEmpty())
      << "told of the data";
}

TEST(NeverActs, AMilestoneBehindTheEnd) {
  EXPECT_THAT(lines_of("lr_scheduler: {name: multi_step, milestones: [10, 21, 30]}"),
              ElementsAre("the milestone 21 of lr_scheduler.milestones (my.yaml:1) is never "
                          "reached: the run has 20 steps; lower it"));
  EXPECT_THAT(lines_of("lr_scheduler: {name: multi_step, milestones: [10, 20]}"), IsEmpty());
  EXPECT_THAT(lines_of("lr_scheduler: {name: chain, milestones: [20]}"),
              ElementsAre(HasSubstr("milestone 20")));
  EXPECT_THAT(lines_of("training: {step_lr_interval: epoch}\n"
                       "lr_scheduler: {name: multi_step, milestones: [5]}"),
              ElementsAre(HasSubstr("the run has 4 epochs")));
}

TEST(NeverActs, AHookThatBeginsBehindTheEnd) {
  const std::string hook =
      "parallel: {ddp: {comm_hook: {name: powerSGD, start_powerSGD_iter: 20}}}";
  EXPECT_THAT(lines_of(hook, {.has_ranks = true}),
              ElementsAre(StartsWith("parallel.ddp.comm_hook.start_powerSGD_iter (my.yaml:1) never "
                                     "acts: the run has 20 steps, and ")));
  EXPECT_THAT(lines_of(hook), IsEmpty()) << "nothing is reduced";
}

TEST(PlaceOf, IsThatOfTheFirstFieldThatIsSet) {
  const config::Node tree = config_of("a: {b: 1}\nc:\n  d: [2]");
  EXPECT_EQ(place_of(tree, {"a.x", "c.d", "a.b"}), " (my.yaml:3)");
  EXPECT_EQ(place_of(tree, {"a.x"}), "");
}

}  // namespace
}  // namespace phalanx
