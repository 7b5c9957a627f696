// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/stages.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/api/unit.h"

namespace phalanx::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LayerImpl : public torch::nn::Module, public Unit {
 public:
  LayerImpl() : weight(register_parameter("weight", at::zeros({4, 4}))) {}
  at::Tensor forward(const at::Tensor& input) { return input; }

  at::Tensor weight;
};
UNIT(Layer);

/// A unit with units in it.
class BlockImpl : public torch::nn::Module, public Unit {
 public:
  BlockImpl() : inner_(register_module("inner", Layer())) {}
  at::Tensor forward(const at::Tensor& input) { return inner_(input); }

 private:
  Layer inner_;
};
UNIT(Block);

/// An embedding, and so many blocks.
struct Net : torch::nn::Module {
  explicit Net(int64_t blocks) : embedding(register_parameter("embedding", at::zeros({3, 4}))) {
    for (int64_t i = 0; i < blocks; ++i) register_module("block" + std::to_string(i), Block());
  }

  at::Tensor embedding;
};

std::map<std::string, std::vector<int64_t>> holders(const Stages& stages) {
  std::map<std::string, std::vector<int64_t>> all;
  for (const StagedParameter& parameter : stages.parameters) all[parameter.name] = parameter.stages;
  return all;
}

TEST(Stages, GiveLaterStagesOneUnitMoreWhereTheyDoNotComeOutEven) {
  Net net(5);
  const Stages stages = divide(net, 3);
  ASSERT_EQ(stages.units.size(), 5U) << "units within units are no units of a stage";
  EXPECT_EQ(stages.first_unit(0), 0);
  EXPECT_EQ(stages.first_unit(1), 1);
  EXPECT_EQ(stages.first_unit(2), 3);
  EXPECT_EQ(stages.first_unit(3), 5);
  const std::vector<int64_t> expected{0, 1, 1, 2, 2};
  for (int64_t unit = 0; unit < 5; ++unit) {
    EXPECT_EQ(stages.stage_of(unit), expected[static_cast<size_t>(unit)]) << unit;
  }
}

TEST(Stages, HoldEachParameterWhereItIsUsed) {
  Net net(3);
  const auto held = holders(divide(net, 3));
  EXPECT_THAT(held.at("embedding"), ElementsAre(0, 2));
  EXPECT_THAT(held.at("block0.inner.weight"), ElementsAre(0));
  EXPECT_THAT(held.at("block1.inner.weight"), ElementsAre(1));
  EXPECT_THAT(held.at("block2.inner.weight"), ElementsAre(2));
}

TEST(Stages, HoldAllWhereThereIsOne) {
  Net net(2);
  for (const auto& [name, stages] : holders(divide(net, 1))) {
    EXPECT_THAT(stages, ElementsAre(0)) << name;
  }
}

TEST(Stages, RefuseAModelWithFewerUnits) {
  Net net(1);
  EXPECT_THAT([&] { divide(net, 2); },
              ThrowsMessage<std::invalid_argument>("2 stages of a model of 1 unit"));
  EXPECT_THAT([&] { divide(net, 0); }, ::testing::Throws<std::invalid_argument>());
}

TEST(Stages, RefuseAParameterOfAUnitThatIsUsedElsewhere) {
  Net net(2);
  Layer tied;
  tied->weight = tied->register_parameter("tied", net.named_parameters()["block0.inner.weight"]);
  net.register_module("head", tied.ptr());
  EXPECT_THAT([&] { divide(net, 2); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("belongs to a unit, and to another")));
}

}  // namespace
}  // namespace phalanx::pipeline
