// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/linear.h"
#include "tests/tensors.h"
#include "trainer/api/model.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task_model.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Three layers: of both layouts, and a head.
class Layers : public Model<> {
 public:
  Layers()
      : first(register_module("first", Linear(3, 5, LinearOptions{}))),
        turned(register_module("turned", Linear(3, 5, LinearOptions{.inputs_first = true}))),
        head(register_module("head", Linear(5, 7, LinearOptions{.is_head = true}))) {}

  Linear first;
  Linear turned;
  Linear head;
};

constexpr AdapterOptions kOptions{.rank = 2, .scale = 0.5, .dropout = 0};

std::vector<std::string> names_of(const std::vector<ShardedTensorView>& views) {
  std::vector<std::string> names;
  for (const ShardedTensorView& view : views) names.push_back(view.name);
  return names;
}

at::Tensor parameter_named(ModelBase& model, const std::string& name) {
  for (const NamedParameter& parameter : named_parameters(model)) {
    if (parameter.name == name) return parameter.tensor;
  }
  throw std::out_of_range(name);
}

TEST(Adapters, AreNoPartOfTheResultAtFirst) {
  Layers model;
  const at::Tensor input = tensors::randn({4, 3});
  for (Linear* layer : {&model.first, &model.turned}) {
    const at::Tensor before = (*layer)(input);
    (*layer)->add_adapter(kOptions);
    EXPECT_TRUE((*layer)(input).equal(before));
  }
}

TEST(Adapters, AddTheScaledProductOfTheirMatrices) {
  Layers model;
  const at::Tensor input = tensors::randn({2, 4, 3});
  for (auto& [name, layer] :
       {std::pair("first", &model.first), std::pair("turned", &model.turned)}) {
    const at::Tensor before = (*layer)(input).detach();
    (*layer)->add_adapter(kOptions);
    const std::string prefix = std::string(name) + ".lora_";
    const at::Tensor a = parameter_named(model, prefix + "A.weight").detach();
    const at::Tensor b = parameter_named(model, prefix + "B.weight").detach();
    EXPECT_THAT(a.sizes().vec(), ElementsAre(2, 3));
    EXPECT_THAT(b.sizes().vec(), ElementsAre(5, 2));
    EXPECT_LE(a.abs().max().item<float>(), 1 / std::sqrt(3.0F));
    EXPECT_EQ(b.abs().max().item<float>(), 0);
    b.copy_(tensors::randn({5, 2}));
    const at::Tensor expected = before + input.matmul(a.t()).matmul(b.t()) * 0.5;
    EXPECT_TRUE((*layer)(input).allclose(expected, 1e-5, 1e-6));
  }
}

TEST(Adapters, DropTheirInputInTrainingAlone) {
  Layers model;
  model.first->add_adapter({.rank = 2, .scale = 1, .dropout = 0.5});
  parameter_named(model, "first.lora_B.weight").detach().fill_(1);
  const at::Tensor input = tensors::ones({64, 3});
  EXPECT_FALSE(model.first(input).equal(model.first(input)));
  set_training(model, false);
  EXPECT_TRUE(model.first(input).equal(model.first(input)));
}

TEST(Adapters, AreTrainedAlone) {
  Layers model;
  add_adapters(model, {"turned"}, kOptions, "lora.target_modules");
  EXPECT_TRUE(has_adapters(model));
  EXPECT_EQ(count_trained_parameters(model), 2 * 3 + 5 * 2);
  const TaskModel task_model(nullptr, std::shared_ptr<ModelBase>(std::shared_ptr<void>(), &model));
  EXPECT_THAT(names_of(task_model.views()),
              ElementsAre("turned.lora_A.weight", "turned.lora_B.weight"));
  EXPECT_THAT(names_of(task_model.base_views()),
              ElementsAre("first.weight", "first.bias", "turned.weight", "turned.bias",
                          "head.weight", "head.bias"));
}

TEST(Adapters, GoWhereTheEndOfANameOrAPatternSays) {
  for (const std::string target : {"first", "f*", "?irst"}) {
    Layers model;
    add_adapters(model, {target}, kOptions, "lora.target_modules");
    EXPECT_TRUE(model.first->has_adapter()) << target;
    EXPECT_FALSE(model.turned->has_adapter()) << target;
  }
  Layers model;
  add_adapters(model, {"*"}, kOptions, "lora.target_modules");
  EXPECT_TRUE(model.first->has_adapter());
  EXPECT_TRUE(model.turned->has_adapter());
  EXPECT_FALSE(model.head->has_adapter());
}

TEST(Adapters, ATargetThatMatchesNothingIsTold) {
  Layers model;
  EXPECT_THAT(
      [&] {
        add_adapters(model, {"first", "irst"}, kOptions, "lora.target_modules");
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("lora.target_modules"), HasSubstr("'irst'"),
                                     HasSubstr("first, turned"))));
  EXPECT_FALSE(has_adapters(model));
  EXPECT_THAT([&] { add_adapters(model, {"head"}, kOptions, "lora.target_modules"); },
              ThrowsMessage<UserError>(HasSubstr("'head'")));
}

}  // namespace
}  // namespace phalanx
