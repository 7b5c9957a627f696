// SPDX-License-Identifier: Apache-2.0
// Units, parameters and modes of a model: what looks into torch modules.

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>

#include <string>
#include <vector>

#include "trainer/api/model.h"
#include "trainer/api/parameters.h"
#include "trainer/api/unit.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> calls;

class BlockImpl : public torch::nn::Module, public Unit {
 public:
  BlockImpl() : weight(register_parameter("weight", at::full({2, 2}, 2.0))) {}

  at::Tensor forward(const at::Tensor& input, const at::Tensor& shift = at::zeros({}),
                     double factor = 1) {
    calls.emplace_back("forward");
    return input * weight.sum() * factor + shift;
  }

  at::Tensor weight;
};
UNIT(Block);

// Notes its name, adds to every input and multiplies the output.
class Hook : public ModuleHook {
 public:
  explicit Hook(std::string name, double amount = 0) : name_(std::move(name)), amount_(amount) {}

  std::vector<at::Tensor> around(HookedModule& module, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    calls.push_back(name_ + " before " + std::to_string(inputs.size()));
    seen = &module;
    for (at::Tensor& input : inputs) input = input + amount_;
    std::vector<at::Tensor> outputs = forward(std::move(inputs));
    calls.push_back(name_ + " after");
    for (at::Tensor& output : outputs) output = output * (1 + amount_);
    return outputs;
  }

  HookedModule* seen = nullptr;

 private:
  std::string name_;
  double amount_;
};

TEST(UnitCall, IsThePlainForwardWithoutHooks) {
  calls.clear();
  Block block;
  EXPECT_EQ(block(at::scalar_tensor(3)).item<double>(), 24);
  EXPECT_EQ(block(at::scalar_tensor(3), at::scalar_tensor(1), 0.5).item<double>(), 13);
  EXPECT_THAT(calls, ElementsAre("forward", "forward"));
}

TEST(UnitCall, RunsHooksAroundForwardClosingInReverse) {
  calls.clear();
  Block block;
  const auto first = std::make_shared<Hook>("first");
  block->attach(first);
  block->attach(std::make_shared<Hook>("second"));
  EXPECT_EQ(block(at::scalar_tensor(3)).item<double>(), 24);
  EXPECT_THAT(calls, ElementsAre("first before 1", "second before 1", "forward", "second after",
                                 "first after"));
  EXPECT_EQ(first->seen, block.get());
}

TEST(UnitCall, LetsHooksReplaceTensors) {
  Block block;
  block->attach(std::make_shared<Hook>("adds", 1));
  // ((3 + 1) * 8 * 0.5 + (10 + 1)) * 2: the number is no tensor and stays.
  EXPECT_EQ(block(at::scalar_tensor(3), at::scalar_tensor(10), 0.5).item<double>(), 54);
  EXPECT_EQ(block->forward(at::scalar_tensor(3)).item<double>(), 24) << "forward has no hooks";
}

TEST(UnitCall, DoesNotChangeTheCallersTensors) {
  Block block;
  block->attach(std::make_shared<Hook>("adds", 1));
  const at::Tensor input = at::scalar_tensor(3);
  block(input);
  EXPECT_EQ(input.item<double>(), 3);
}

// A unit with another one in it.
class PairImpl : public torch::nn::Module, public Unit {
 public:
  PairImpl() : inner(register_module("inner", Block())) {
    register_parameter("own", at::ones({5}));
  }
  at::Tensor forward(const at::Tensor& input) { return inner(input); }

  Block inner;
};
UNIT(Pair);

class NormImpl : public torch::nn::Module {
 public:
  NormImpl() { register_parameter("weight", at::ones({2})); }
};
TORCH_MODULE(Norm);

class Net : public Model<> {
 public:
  Net()
      : table(register_module("table", torch::nn::Embedding(4, 2))),
        first(register_module("first", Block())),
        pair(register_module("pair", Pair())),
        norm(register_module("norm", Norm())) {
    register_module("first_again", first);
    register_parameter("head", table->weight);  // tied
    frozen = register_parameter("frozen", at::ones({3, 3}), /*requires_grad=*/false);
    register_parameter("bias", at::zeros({2}));
    register_buffer("mask", at::ones({7}));
  }

  torch::nn::Embedding table;
  Block first;
  Pair pair;
  Norm norm;
  at::Tensor frozen;
};

std::vector<std::string> names_of(const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter.name);
  return names;
}

TEST(Units, AreNamedInOrderAndOnce) {
  Net net;
  std::vector<std::string> names;
  for (const auto& unit : units(net)) {
    names.push_back(unit.name);
    EXPECT_EQ(dynamic_cast<Unit*>(unit.module), unit.hooks);
  }
  EXPECT_THAT(names, ElementsAre("first", "pair", "pair.inner"));
}

TEST(Units, SummaryCountsWhatLiesOutsideThemOnce) {
  Net net;
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const auto& unit : summarize_units(net)) sizes.emplace_back(unit.name, unit.parameters);
  using Row = std::pair<std::string, int64_t>;
  // Outside: the embedding (8), the norm (2), frozen (9), bias (2).
  EXPECT_THAT(sizes,
              ElementsAre(Row{"first", 4}, Row{"pair", 9}, Row{"pair.inner", 4}, Row{"", 21}));
  EXPECT_EQ(count_parameters(net), 4 + 9 + 21);
}

TEST(Parameters, SharedOnesAppearOnceUnderTheirFirstName) {
  Net net;
  const auto parameters = named_parameters(net);
  EXPECT_THAT(names_of(parameters), ElementsAre("head", "frozen", "bias", "first.weight",
                                                "pair.own", "pair.inner.weight", "norm.weight"));
}

TEST(Parameters, NormsBiasesAndEmbeddingsDoNotDecay) {
  Net net;
  const auto groups = default_parameter_groups(net);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].label, "decay");
  EXPECT_TRUE(groups[0].weight_decay);
  EXPECT_THAT(names_of(groups[0].parameters), ElementsAre("first.weight", "pair.inner.weight"));
  EXPECT_EQ(groups[1].label, "no decay");
  EXPECT_FALSE(groups[1].weight_decay);
  EXPECT_THAT(names_of(groups[1].parameters),
              ElementsAre("head", "bias", "pair.own", "norm.weight"));
}

TEST(Parameters, AnEmptyGroupIsLeftOut) {
  Net net;
  for (auto& parameter : net.parameters()) parameter.set_requires_grad(parameter.dim() < 2);
  const auto groups = default_parameter_groups(net);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].label, "no decay");
  for (auto& parameter : net.parameters()) parameter.set_requires_grad(false);
  EXPECT_TRUE(default_parameter_groups(net).empty());
}

TEST(Parameters, ViewsAliasTheModelsStorage) {
  Net net;
  const auto views = model_views(net);
  std::vector<std::string> names;
  for (const auto& view : views) {
    names.push_back(view.name);
    EXPECT_EQ(view.begin, 0);
    EXPECT_EQ(view.end, view.local.numel());
    EXPECT_FALSE(view.local.requires_grad());
  }
  EXPECT_THAT(names, ElementsAre("head", "frozen", "bias", "first.weight", "pair.own",
                                 "pair.inner.weight", "norm.weight", "mask"));
  EXPECT_THAT(views[3].shape, ElementsAre(2, 2));
  views[3].local.fill_(9);
  EXPECT_EQ(net.first->weight.sum().item<double>(), 36);
}

TEST(Parameters, AViewMayHaveAnyStridesButElementsOfItsOwn) {
  const at::Tensor turned = at::zeros({2, 3}).t();
  EXPECT_TRUE(whole_tensor("turned", turned).local.is_alias_of(turned));
  EXPECT_THROW(whole_tensor("same", at::zeros({1, 3}).expand({2, 3})), std::logic_error);
  EXPECT_EQ(whole_tensor("one", at::zeros({3}).expand({1, 3})).end, 3);
}

TEST(Parameters, BecomeDoubleInPlace) {
  Net net;
  to_double(net);
  for (const auto& view : model_views(net)) EXPECT_EQ(view.dtype, at::kDouble) << view.name;
  EXPECT_EQ(net.first->weight.scalar_type(), at::kDouble) << "members see it too";
  EXPECT_EQ(count_parameters(net), 34) << "what was shared still is";
}

TEST(Mode, EvaluationPutsEveryModulesModeBack) {
  Net net;
  net.pair->inner->eval();  // as a task keeps a frozen part
  {
    const EvaluationMode evaluation(net);
    for (const auto& module : net.modules(/*include_self=*/false)) {
      EXPECT_FALSE(module->is_training()) << module->name();
    }
    EXPECT_FALSE(net.is_training());
  }
  EXPECT_TRUE(net.is_training());
  EXPECT_TRUE(net.pair->is_training());
  EXPECT_FALSE(net.pair->inner->is_training());
  EXPECT_TRUE(net.norm->is_training());
}

class Speaks {
 public:
  static constexpr std::string_view kInterface = "Speaks";
};
class Listens {
 public:
  static constexpr std::string_view kInterface = "Listens";
};

TEST(Model, ListsItsInterfaces) {
  EXPECT_THAT((Model<Speaks, Listens>::interfaces()), ElementsAre("Speaks", "Listens"));
}

}  // namespace
}  // namespace phalanx
