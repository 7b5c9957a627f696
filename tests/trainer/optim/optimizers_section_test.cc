// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/optimizers_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/trainer/registered.h"
#include "trainer/base/user_error.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::Declaration declaration() {
  config::Declaration whole("Test");
  declare_optimizer(whole);
  config::Choice schedules = registered_choice<LrScheduler>();
  schedules.default_name = "constant";
  whole.add_choice("lr_scheduler", std::move(schedules));
  declare_optimizers(whole);
  return whole;
}

config::Node resolved(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(yaml, "test.yaml", diagnostics);
  complete_optimizers(tree);
  tree = config::resolve(declaration(), std::move(tree), diagnostics);
  diagnostics.throw_if_any();
  return tree;
}

std::string problem_of(const std::string& yaml) {
  try {
    resolved(yaml);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kTwo =
    "{optimizers: {generator: {name: adamw, lr: 0.5, groups: [{parameters: [h.*], lr: 1}]}, "
    "critic: {name: sgd, lr: 2, parameters: [judge.*], clip_grad_norm: 0.25, "
    "lr_scheduler: {name: linear, warmup_steps: 3}}}}";

TEST(OptimizersSection, OneIsAsItWas) {
  const config::Node one = resolved("{optimizer: {name: adamw, freeze: [wte.*]}}");
  const auto rules = optimizer_rules(one);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules.front().name, "");
  EXPECT_FALSE(rules.front().parameters);
  EXPECT_THAT(rules.front().rules.freeze.field, HasSubstr("optimizer.freeze"));
  EXPECT_EQ(&optimizer_section(one, ""), one.find("optimizer"));
}

TEST(OptimizersSection, SeveralHaveTheFieldsOfOneAndTheirOwn) {
  const config::Node two = resolved(kTwo);
  const auto rules = optimizer_rules(two);
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].name, "critic") << "by name";
  EXPECT_THAT(rules[0].parameters->patterns, ElementsAre("judge.*"));
  EXPECT_THAT(rules[0].parameters->field, HasSubstr("optimizers.critic.parameters (test.yaml:1"));
  EXPECT_EQ(rules[1].name, "generator");
  EXPECT_FALSE(rules[1].parameters);
  EXPECT_THAT(rules[1].rules.groups.front().parameters.field,
              HasSubstr("optimizers.generator.groups[0].parameters"));
  EXPECT_EQ(schedule_path(two, "generator"), "lr_scheduler");
  EXPECT_EQ(schedule_path(two, "critic"), "optimizers.critic.lr_scheduler");
  EXPECT_EQ(own_clip_grad_norm(optimizer_section(two, "critic")), 0.25);
  EXPECT_FALSE(own_clip_grad_norm(optimizer_section(two, "generator")));
  EXPECT_TRUE(two.find("optimizer")->is_null());
}

TEST(OptimizersSection, AConfigHasOneOfTheTwoForms) {
  EXPECT_THAT(problem_of("optimizer: adamw\n\noptimizers: {a: sgd}"),
              HasSubstr("optimizer (test.yaml:1) and optimizers (test.yaml:3) are both given, and "
                        "one of the two moves the weights: remove the other. To keep optimizers "
                        "write optimizer: null"));
  EXPECT_THAT(problem_of("{}"), HasSubstr("optimizer: a mandatory value is missing"));
  EXPECT_THAT(problem_of("{optimizer: null}"), HasSubstr("optimizers names none"));
}

TEST(OptimizersSection, RefusesWhatCannotBe) {
  EXPECT_THAT(problem_of("{optimizers: {a: sgd, b: adamw}}"),
              HasSubstr("optimizers.a and optimizers.b both leave out `parameters`"));
  EXPECT_THAT(problem_of("{optimizers: {A: sgd}}"), HasSubstr("not a valid name for an optimizer"));
  EXPECT_THAT(problem_of("{optimizers: {a: {lr: 1}}}"), HasSubstr("optimizers.a.name"));
  EXPECT_THAT(problem_of("{optimizers: {a: {name: sgd, betas: [0, 0]}}}"), HasSubstr("betas"));
  EXPECT_THAT(problem_of("{optimizers: {a: {name: sgd, parameters: []}}}"),
              HasSubstr("parameters names none"));
  EXPECT_THAT(problem_of("{optimizers: {a: {name: sgd, clip_grad_norm: 0}}}"),
              HasSubstr("optimizers.a.clip_grad_norm"));
}

TEST(OptimizersSection, AResumeMayChangeRatesAndNotWhoMovesWhat) {
  const config::Node two = resolved(kTwo);
  const config::Declaration whole = declaration();
  EXPECT_TRUE(whole.resume_may_change("optimizers.critic.lr", two));
  EXPECT_TRUE(whole.resume_may_change("optimizers.critic.lr_scheduler.warmup_steps", two));
  EXPECT_TRUE(whole.resume_may_change("optimizers.critic.clip_grad_norm", two));
  EXPECT_FALSE(whole.resume_may_change("optimizers.critic.parameters", two));
  EXPECT_FALSE(whole.resume_may_change("optimizers.critic", two));
  EXPECT_FALSE(whole.resume_may_change("optimizers.judge.lr", two));
}

}  // namespace
}  // namespace phalanx
