// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/optimizer_section.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

config::Declaration declaration() {
  config::Declaration declaration("Test");
  declaration.add_choice("optimizer", optimizer_choice());
  return declaration;
}

/// The section, resolved from YAML.
config::Node section(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml("optimizer: " + yaml, "test.yaml", diagnostics);
  tree = config::resolve(declaration(), std::move(tree), diagnostics);
  diagnostics.throw_if_any();
  return *tree.find("optimizer");
}

std::string problem_of(const std::string& yaml) {
  try {
    section(yaml);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

at::Tensor weight(double value) {
  return at::tensor({value, -value}, at::kDouble).requires_grad_();
}

/// A group as parameter_groups makes it for the rule of a config.
ParameterGroup group(const std::string& name, const at::Tensor& tensor,
                     std::optional<std::size_t> rule, double lr_scale = 1) {
  return {.label = name,
          .weight_decay = true,
          .parameters = {{name, tensor}},
          .rule = rule,
          .lr_scale = lr_scale};
}

void set_gradients(const std::vector<at::Tensor>& weights, int64_t step) {
  for (const at::Tensor& weight : weights) {
    weight.mutable_grad() = at::tensor({0.5 + static_cast<double>(step), -0.25}, at::kDouble);
  }
}

TEST(OptimizerSection, WithoutGroupsIsTheClassItself) {
  const config::Node plain = section("{name: adamw, lr: 0.5}");
  EXPECT_TRUE(parameter_rules(plain).is_plain());
  EXPECT_EQ(make_optimizer(plain)->base_lr(), 0.5);
}

TEST(OptimizerSection, RulesSayWhatHoldsForEachGroup) {
  const ParameterRules rules = parameter_rules(section(
      "{name: adamw, lr: 0.5, weight_decay: 0.1, freeze: [wte.*], layer_lr_decay: 0.9, groups: "
      "[{parameters: [h.*, x], lr_scale: 2}, {parameters: [head], lr: 3, weight_decay: 0}]}"));
  ASSERT_EQ(rules.groups.size(), 2u);
  EXPECT_THAT(rules.groups[0].parameters.patterns, UnorderedElementsAre("h.*", "x"));
  EXPECT_THAT(rules.groups[0].parameters.field,
              HasSubstr("optimizer.groups[0].parameters (test.yaml:1"));
  EXPECT_EQ(rules.groups[0].lr_scale, 2);
  EXPECT_FALSE(rules.groups[0].decays_all);
  EXPECT_EQ(rules.groups[0].rates, (NamedValues{{"lr", 0.5}}));
  EXPECT_EQ(rules.groups[0].decays, (NamedValues{{"weight_decay", 0.1}}));
  EXPECT_TRUE(rules.groups[1].decays_all);
  EXPECT_EQ(rules.groups[1].rates, (NamedValues{{"lr", 3}}));
  EXPECT_THAT(rules.freeze.patterns, UnorderedElementsAre("wte.*"));
  EXPECT_EQ(rules.layer_lr_decay, 0.9);
}

// Muon moves norms, biases and embeddings by AdamW, whose decay has a name of its own: a group that
// sets weight_decay: 0 alone must not begin to decay them by the default of the other.
TEST(OptimizerSection, OnlyTheDecayOfVectorsDecaysAll) {
  const ParameterRules rules = parameter_rules(
      section("{name: muon, groups: [{parameters: [a], adamw_weight_decay: 0.5}, "
              "{parameters: [b], weight_decay: 0}, {parameters: [c], adamw_lr: 1}]}"));
  EXPECT_TRUE(rules.groups[0].decays_all);
  EXPECT_FALSE(rules.groups[1].decays_all);
  EXPECT_FALSE(rules.groups[2].decays_all);
  EXPECT_EQ(rules.groups[2].rates, (NamedValues{{"lr", 1e-3}, {"adamw_lr", 1}}));
}

TEST(OptimizerSection, SaysWhereTheDecayByDepthStands) {
  EXPECT_EQ(parameter_rules(section("{name: adamw, layer_lr_decay: 0.5}")).layer_lr_decay_field,
            "optimizer.layer_lr_decay (test.yaml:1)");
  EXPECT_EQ(parameter_rules(section("adamw")).layer_lr_decay_field, "optimizer.layer_lr_decay");
}

TEST(OptimizerSection, RefusesWhatNoGroupHas) {
  EXPECT_THAT(problem_of("{name: sgd, groups: [{parameters: [a], betas: [0, 0]}]}"),
              HasSubstr("betas"));
  EXPECT_THAT(problem_of("{name: adamw, groups: [{lr: 1}]}"), HasSubstr("parameters"));
  EXPECT_THAT(problem_of("{name: adamw, groups: [{parameters: []}]}"), HasSubstr("names none"));
  EXPECT_THAT(problem_of("{name: adamw, groups: [{parameters: [a], lr: -1}]}"),
              HasSubstr("optimizer.groups[0].lr"));
  EXPECT_THAT(problem_of("{name: adamw, layer_lr_decay: 0}"), HasSubstr("layer_lr_decay"));
  // Across fields, with what the group inherits.
  EXPECT_THAT(problem_of("{name: sgd, momentum: 0.9, nesterov: true, groups: [{parameters: [a], "
                         "dampening: 0.5}]}"),
              HasSubstr("groups[0]: nesterov needs"));
}

TEST(OptimizerSection, AResumeMayChangeGroupsAndNotWhatIsFrozen) {
  const config::Declaration whole = declaration();
  config::Node tree = config::Node::map();
  tree.set("optimizer", section("{name: adamw}"));
  EXPECT_TRUE(whole.resume_may_change("optimizer.groups", tree));
  EXPECT_TRUE(whole.resume_may_change("optimizer.layer_lr_decay", tree));
  EXPECT_FALSE(whole.resume_may_change("optimizer.freeze", tree));
}

// Each group moves as an optimizer of its own with its numbers does, to the last bit.
TEST(GroupedOptimizer, MovesEachGroupByItsOwnFields) {
  const auto grouped = make_optimizer(
      section("{name: adamw, lr: 0.1, groups: [{parameters: [a], lr: 0.3, betas: [0.5, 0.5]}, "
              "{parameters: [b], weight_decay: 0}]}"));
  const std::vector<at::Tensor> mine{weight(1), weight(2), weight(3), weight(4)};
  grouped->bind({group("a", mine[0], 0), group("b", mine[1], 1), group("c", mine[2], std::nullopt),
                 group("d", mine[3], std::nullopt, /*lr_scale=*/0.5)});
  const std::vector<std::string> plain{"{lr: 0.3, betas: [0.5, 0.5]}", "{lr: 0.1, weight_decay: 0}",
                                       "{lr: 0.1}", "{lr: 0.05}"};
  std::vector<at::Tensor> theirs;
  std::vector<std::shared_ptr<Optimizer>> optimizers;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    theirs.push_back(weight(static_cast<double>(i + 1)));
    optimizers.push_back(make_registered<Optimizer>("adamw", plain[i]));
    optimizers.back()->bind({group("w", theirs[i], std::nullopt)});
  }
  for (int64_t step = 1; step <= 5; ++step) {
    const double factor = 1.0 / static_cast<double>(step);
    set_gradients(mine, step);
    set_gradients(theirs, step);
    grouped->step_by(factor);
    for (const auto& optimizer : optimizers) optimizer->step_by(factor);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      EXPECT_TRUE(mine[i].equal(theirs[i])) << "group " << i << " at step " << step;
    }
  }
}

// A head alone may have a rate.
TEST(GroupedOptimizer, GroupsMoveWhereTheRestHasNoRate) {
  const auto optimizer =
      make_optimizer(section("{name: sgd, lr: 0, groups: [{parameters: [a], lr: 1}]}"));
  const std::vector<at::Tensor> weights{weight(1), weight(1)};
  optimizer->bind({group("a", weights[0], 0), group("b", weights[1], std::nullopt)});
  set_gradients(weights, 0);
  optimizer->step_by(0.5);
  EXPECT_EQ(weights[0][0].item<double>(), 0.75);
  EXPECT_EQ(weights[1][0].item<double>(), 1);
}

TEST(GroupedOptimizer, ASkippedStepMovesNothing) {
  const auto optimizer =
      make_optimizer(section("{name: adamw, groups: [{parameters: [a], lr: 1}]}"));
  const std::vector<at::Tensor> weights{weight(1), weight(1)};
  optimizer->bind({group("a", weights[0], 0), group("b", weights[1], std::nullopt)});
  set_gradients(weights, 0);
  optimizer->step_by(1, at::tensor(1.0F).squeeze());
  EXPECT_EQ(weights[0][0].item<double>(), 1);
  EXPECT_EQ(weights[1][0].item<double>(), 1);
}

TEST(GroupedOptimizer, StateIsThatOfAllGroups) {
  const auto optimizer =
      make_optimizer(section("{name: adamw, groups: [{parameters: [a], lr: 1, amsgrad: true}]}"));
  const std::vector<at::Tensor> weights{weight(1), weight(1)};
  EXPECT_EQ(optimizer->states_of({.name = "a", .tensor = weights[0]}), 2);
  optimizer->bind({group("a", weights[0], 0), group("b", weights[1], std::nullopt)});
  std::vector<std::string> names;
  for (const auto& view : optimizer->state()) names.push_back(view.name);
  EXPECT_THAT(names, UnorderedElementsAre("a.exp_avg", "a.exp_avg_sq", "a.max_exp_avg_sq", "a.step",
                                          "b.exp_avg", "b.exp_avg_sq", "b.step"));
}

}  // namespace
}  // namespace phalanx
