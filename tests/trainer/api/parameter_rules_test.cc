// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/parameter_rules.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <map>
#include <string>
#include <vector>

#include "models/layers/linear.h"
#include "trainer/api/adapters.h"
#include "trainer/api/model.h"
#include "trainer/api/parameters.h"
#include "trainer/api/unit.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BlockImpl : public torch::nn::Module, public Unit {
 public:
  BlockImpl() {
    register_parameter("weight", at::zeros({2, 2}));
    register_parameter("bias", at::zeros({2}));
  }
  at::Tensor forward(const at::Tensor& input) { return input; }
};
UNIT(Block);

struct Nothing {
  static constexpr std::string_view kInterface = "Nothing";
};

class Net : public Model<Nothing> {
 public:
  explicit Net(int64_t blocks = 3) {
    register_module("embed", torch::nn::Embedding(5, 2));
    for (int64_t i = 0; i < blocks; ++i) register_module("h" + std::to_string(i), Block());
    register_module("norm", torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
    register_module("head",
                    Linear(2, 5, phalanx::LinearOptions{.has_bias = false, .is_head = true}));
  }
};

ParameterPatterns patterns(std::vector<std::string> texts, std::string field = "the field") {
  return {.patterns = std::move(texts), .field = std::move(field)};
}

std::vector<std::string> names(const ParameterGroup& group) {
  std::vector<std::string> names;
  for (const auto& parameter : group.parameters) names.push_back(parameter.name);
  return names;
}

std::vector<std::string> labels(const std::vector<ParameterGroup>& groups) {
  std::vector<std::string> labels;
  for (const auto& group : groups) labels.push_back(group.label);
  return labels;
}

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ParameterGroups, WithoutRulesAreTheDefaultOnes) {
  Net net;
  const auto groups = parameter_groups(net, {});
  EXPECT_THAT(labels(groups), ElementsAre("decay", "no decay"));
  EXPECT_THAT(names(groups[0]),
              ElementsAre("h0.weight", "h1.weight", "h2.weight", "norm.weight", "head.weight"));
  EXPECT_EQ(groups[0].rule, std::nullopt);
  EXPECT_EQ(groups[0].lr_scale, 1);
}

TEST(ParameterGroups, TheFirstThatMatchesCounts) {
  Net net;
  ParameterRules rules;
  rules.groups.push_back({.parameters = patterns({"h1.*"}), .lr_scale = 0.5});
  rules.groups.push_back({.parameters = patterns({"h?.weight", "head.*"}), .decays_all = true});
  const auto groups = parameter_groups(net, rules);
  EXPECT_THAT(labels(groups), ElementsAre("h1.*, decay", "h1.*, no decay", "h?.weight head.*",
                                          "decay", "no decay"));
  EXPECT_THAT(names(groups[0]), ElementsAre("h1.weight"));
  EXPECT_THAT(names(groups[1]), ElementsAre("h1.bias"));
  EXPECT_THAT(names(groups[2]), ElementsAre("h0.weight", "h2.weight", "head.weight"));
  EXPECT_THAT(names(groups[3]), ElementsAre("norm.weight"));
  EXPECT_THAT(names(groups[4]), ElementsAre("embed.weight", "h0.bias", "h2.bias"));
  EXPECT_EQ(groups[0].lr_scale, 0.5);
  EXPECT_EQ(groups[1].rule, 0u);
  EXPECT_EQ(groups[2].rule, 1u);
  EXPECT_EQ(groups[3].rule, std::nullopt);
}

TEST(ParameterGroups, AGroupWithADecayOfItsOwnDecaysAll) {
  Net net;
  ParameterRules rules;
  rules.groups.push_back({.parameters = patterns({"*"}), .decays_all = true});
  const auto groups = parameter_groups(net, rules);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].weight_decay);
  EXPECT_EQ(groups[0].parameters.size(), named_parameters(net).size());
}

TEST(ParameterGroups, RefuseAPatternThatMatchesNothingWithTheNearestNames) {
  Net net;
  ParameterRules rules;
  rules.groups.push_back({.parameters = patterns({"h0.*", "h1.wieght"}, "groups[0] (a.yaml:3)")});
  EXPECT_THAT(error_of([&] { parameter_groups(net, rules); }),
              AllOf(HasSubstr("groups[0] (a.yaml:3): no trained parameter of the model matches "
                              "'h1.wieght'; the nearest of 9: h1.weight, "),
                    ::testing::Not(HasSubstr("'h0.*'"))));
}

TEST(ParameterGroups, RefuseAGroupThatEarlierOnesLeaveNothing) {
  Net net;
  ParameterRules rules;
  rules.groups.push_back({.parameters = patterns({"*"}, "first")});
  rules.groups.push_back({.parameters = patterns({"h0.*"}, "second")});
  EXPECT_THAT(error_of([&] { parameter_groups(net, rules); }),
              HasSubstr("second: all parameters that match belong to groups before this one"));
}

TEST(ParameterGroups, RatesGoDownByUnits) {
  Net net;
  ParameterRules rules;
  rules.layer_lr_decay = 0.5;
  std::map<std::string, double> scales;
  for (const auto& group : parameter_groups(net, rules)) {
    for (const auto& name : names(group)) scales[name] = group.lr_scale;
  }
  EXPECT_EQ(scales, (std::map<std::string, double>{{"head.weight", 1},
                                                   {"norm.weight", 1},
                                                   {"h2.weight", 0.5},
                                                   {"h2.bias", 0.5},
                                                   {"h1.weight", 0.25},
                                                   {"h1.bias", 0.25},
                                                   {"h0.weight", 0.125},
                                                   {"h0.bias", 0.125},
                                                   {"embed.weight", 0.0625}}));
  rules.groups.push_back({.parameters = patterns({"h2.*"}), .lr_scale = 10});
  EXPECT_EQ(parameter_groups(net, rules).front().lr_scale, 5);
  EXPECT_EQ(parameter_groups(net, rules).front().label, "h2.*, h2, decay");
}

TEST(ParameterGroups, RefuseLayersOfAModelWithoutUnits) {
  Net net(0);
  ParameterRules rules;
  rules.layer_lr_decay = 0.5;
  rules.layer_lr_decay_field = "optimizer.layer_lr_decay (a.yaml:3)";
  EXPECT_THAT(error_of([&] { parameter_groups(net, rules); }),
              HasSubstr("optimizer.layer_lr_decay (a.yaml:3): the model has no units"));
}

TEST(Freeze, TakesParametersOutOfTraining) {
  Net net;
  ParameterRules rules;
  rules.freeze = patterns({"embed.*", "h0.*"});
  freeze_parameters(net, rules);
  for (const auto& parameter : named_parameters(net)) {
    const bool is_frozen = parameter.name.starts_with("embed") || parameter.name.starts_with("h0");
    EXPECT_EQ(parameter.tensor.requires_grad(), !is_frozen) << parameter.name;
  }
  rules.groups.push_back({.parameters = patterns({"h0.*"}, "groups[0]")});
  EXPECT_THAT(error_of([&] { parameter_groups(net, rules); }),
              HasSubstr("groups[0]: no trained parameter of the model matches 'h0.*'"));
}

TEST(Freeze, RefusesWhatIsNotThereAndAll) {
  Net net;
  ParameterRules rules;
  rules.freeze = patterns({"h7.*"}, "optimizer.freeze");
  EXPECT_THAT(error_of([&] { freeze_parameters(net, rules); }),
              HasSubstr("optimizer.freeze: no parameter of the model matches 'h7.*'"));
  rules.freeze = patterns({"*"}, "optimizer.freeze");
  EXPECT_THAT(error_of([&] { freeze_parameters(net, rules); }),
              HasSubstr("optimizer.freeze: this freezes all parameters"));
}

// A checkpoint of adapters holds the trained ones alone.
TEST(Freeze, RefusesAdapters) {
  Net net;
  net.register_module("fc", Linear(2, 2, phalanx::LinearOptions()));
  add_adapters(net, {"fc"}, {.rank = 1}, "lora.target_modules");
  ParameterRules rules;
  rules.freeze = patterns({"embed.*"}, "optimizer.freeze");
  freeze_parameters(net, rules);  // frozen already, beside the adapter
  rules.freeze = patterns({"fc.lora_A.*"}, "optimizer.freeze");
  EXPECT_THAT(error_of([&] { freeze_parameters(net, rules); }),
              HasSubstr("optimizer.freeze: 'fc.lora_A.weight' belongs to an adapter"));
  for (const auto& parameter : named_parameters(net)) {
    EXPECT_EQ(parameter.tensor.requires_grad(), parameter.name.starts_with("fc.lora_"))
        << parameter.name;
  }
}

TEST(DescribeGroups, SaysRatesAndWhatIsFrozen) {
  Net net;
  ParameterRules rules;
  rules.rest = {.rates = {{"lr", 0.01}}, .decays = {{"weight_decay", 0.1}}};
  rules.groups.push_back({.parameters = patterns({"head.*"}),
                          .lr_scale = 2,
                          .rates = {{"lr", 0.5}},
                          .decays = {{"weight_decay", 0.1}}});
  rules.freeze = patterns({"h?.*"});
  freeze_parameters(net, rules);
  EXPECT_THAT(describe_groups(parameter_groups(net, rules), net, rules),
              ElementsAre("head.*, decay: 1 tensor, 10 parameters, lr 1, weight_decay 0.1",
                          "decay: 1 tensor, 2 parameters, lr 0.01, weight_decay 0.1",
                          "no decay: 1 tensor, 10 parameters, lr 0.01, weight_decay 0",
                          "frozen: 6 tensors, 18 parameters"));
}

TEST(Parameters, OfEmbeddingsAndHeadsAreMarked) {
  Net net;
  for (const auto& parameter : named_parameters(net)) {
    const bool expected = parameter.name == "embed.weight" || parameter.name == "head.weight";
    EXPECT_EQ(parameter.is_embedding_or_head, expected) << parameter.name;
  }
}

}  // namespace
}  // namespace phalanx
