// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/task_modules.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/linear.h"
#include "trainer/api/adapters.h"
#include "trainer/api/model.h"
#include "trainer/api/parameter_rules.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/api/task_model.h"
#include "trainer/api/unit.h"
#include "trainer/base/user_error.h"
#include "trainer/registry/registry.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class BlockImpl : public torch::nn::Module, public Unit {
 public:
  BlockImpl() : weight(register_parameter("weight", at::zeros({2, 2}))) {
    register_buffer("scale", at::zeros({1}));
  }
  at::Tensor forward(const at::Tensor& input) { return input; }

  at::Tensor weight;
};
UNIT(Block);

struct Nothing {
  static constexpr std::string_view kInterface = "Nothing";
};

class Net : public Model<Nothing> {
 public:
  Net()
      : embed(register_module("embed", torch::nn::Embedding(5, 2))),
        block(register_module("block", Block())),
        head(register_module("head", Linear(2, 5, LinearOptions{.has_bias = false}))) {}

  torch::nn::Embedding embed;
  Block block;
  Linear head;
};

/// A task that has these modules and does nothing.
class Owning : public Task<Batch, Nothing> {
 public:
  explicit Owning(std::function<std::vector<TaskModule>(ModelBase&)> build)
      : build_(std::move(build)) {}
  explicit Owning(std::vector<TaskModule> modules)
      : Owning([all = std::move(modules)](ModelBase&) { return all; }) {}

  std::vector<TaskModule> build_modules(ModelBase& model) override { return build_(model); }
  std::unique_ptr<BatchSource> build_data(Phase, const BatchRequest&) override { return nullptr; }
  Loss compute_loss(Nothing&, const Batch&, const State&) override { return at::zeros({}); }

 private:
  std::function<std::vector<TaskModule>(ModelBase&)> build_;
};

class WithoutModules : public Task<Batch, Nothing> {
 public:
  std::unique_ptr<BatchSource> build_data(Phase, const BatchRequest&) override { return nullptr; }
  Loss compute_loss(Nothing&, const Batch&, const State&) override { return at::zeros({}); }
};

// What registering a task notes.
static_assert(kHasModules<Owning, AnyTask>);
static_assert(!kHasModules<WithoutModules, AnyTask>);
static_assert(!kHasModules<Net, ModelBase>);

std::shared_ptr<torch::nn::Module> block() { return Block().ptr(); }

std::vector<std::string> names_of(const auto& named) {
  std::vector<std::string> names;
  for (const auto& each : named) names.push_back(each.name);
  return names;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

std::string refusal(std::vector<TaskModule> modules) {
  Net net;
  Owning task(std::move(modules));
  const std::string error = error_of([&] { add_task_modules(net, task); });
  EXPECT_THAT(task_modules(net), IsEmpty());
  return error;
}

TEST(TaskModules, ComeBehindTheModelByTheirNames) {
  Net net;
  Owning task({{.name = "critic", .module = block()}, {.name = "teacher", .module = block()}});
  add_task_modules(net, task);
  EXPECT_THAT(names_of(named_parameters(net)),
              ElementsAre("embed.weight", "block.weight", "head.weight", "task.critic.weight",
                          "task.teacher.weight"));
  EXPECT_THAT(names_of(buffer_views(net.module())),
              ElementsAre("block.scale", "task.critic.scale", "task.teacher.scale"));
  EXPECT_THAT(names_of(task_modules(net)), ElementsAre("critic", "teacher"));
  EXPECT_TRUE(is_of_task("task.critic.weight"));
  EXPECT_EQ(task_module_of("task.critic.weight"), "critic");
  EXPECT_FALSE(is_of_task("block.task.weight"));
}

TEST(TaskModules, ATaskWithoutAnyChangesNothing) {
  Net net;
  Owning task(std::vector<TaskModule>{});
  add_task_modules(net, task);
  EXPECT_THAT(names_of(named_parameters(net)),
              ElementsAre("embed.weight", "block.weight", "head.weight"));
  EXPECT_THAT(describe_task_modules(net), IsEmpty());
}

TEST(TaskModules, SeeTheModelThatTheyAreFor) {
  Net net;
  int64_t rows = 0;
  Owning task([&](ModelBase& model) {
    rows = dynamic_cast<Net&>(model).embed->weight.size(0);
    return std::vector<TaskModule>();
  });
  add_task_modules(net, task);
  EXPECT_EQ(rows, 5);
}

TEST(TaskModules, WhatIsNotTrainedIsFrozenAndComputesAsInEvaluation) {
  Net net;
  Block critic;
  Block teacher;
  Owning task({{.name = "critic", .module = critic.ptr()},
               {.name = "teacher", .module = teacher.ptr(), .is_trained = false}});
  add_task_modules(net, task);
  EXPECT_TRUE(critic->weight.requires_grad());
  EXPECT_FALSE(teacher->weight.requires_grad());
  { const EvaluationMode evaluation(net); }
  EXPECT_TRUE(critic->is_training());
  EXPECT_FALSE(teacher->is_training()) << "after a validation, too";
  EXPECT_THAT(names_of(parameter_groups(net, {}).at(0).parameters),
              ElementsAre("block.weight", "head.weight", "task.critic.weight"));
}

TEST(TaskModules, AreDescribedWithWhatTheyHave) {
  Net net;
  Owning task({{.name = "critic", .module = block()},
               {.name = "teacher", .module = block(), .is_trained = false}});
  add_task_modules(net, task);
  EXPECT_THAT(describe_task_modules(net),
              ElementsAre("critic: 4 parameters", "teacher: 4 parameters, not trained"));
}

TEST(TaskModules, MayShareAParameterThatIsTrainedInBoth) {
  Net net;
  Owning task([](ModelBase& model) {
    auto holder = std::make_shared<torch::nn::Module>();
    holder->register_parameter("weight", dynamic_cast<Net&>(model).block->weight);
    return std::vector<TaskModule>{{.name = "tied", .module = holder}};
  });
  add_task_modules(net, task);
  EXPECT_THAT(names_of(named_parameters(net)),
              ElementsAre("embed.weight", "block.weight", "head.weight"))
      << "once, under the model's name";
}

TEST(TaskModules, SharedParametersThatOneSideFreezesAreRefused) {
  Net net;
  Owning task([](ModelBase& model) {
    auto holder = std::make_shared<torch::nn::Module>();
    holder->register_parameter("table", dynamic_cast<Net&>(model).embed->weight);
    return std::vector<TaskModule>{{.name = "teacher", .module = holder, .is_trained = false}};
  });
  EXPECT_EQ(error_of([&] { add_task_modules(net, task); }),
            "the task's module 'teacher' shares its parameter 'table' with the model's "
            "'embed.weight', and only one of the two is trained: copy it");
  EXPECT_TRUE(net.embed->weight.requires_grad());
}

TEST(TaskModules, NamesThatCannotBePartsOfANameAreRefused) {
  EXPECT_THAT(refusal({{.name = "a.b", .module = block()}}),
              HasSubstr("the task's module 'a.b': a name is one part of a dotted name"));
  EXPECT_THAT(refusal({{.name = "", .module = block()}}), HasSubstr("not empty, without dots"));
  EXPECT_EQ(refusal({{.name = "critic", .module = block()}, {.name = "critic", .module = block()}}),
            "the task has two modules 'critic': give each a name of its own");
  EXPECT_EQ(refusal({{.name = "critic", .module = nullptr}}),
            "the task's module 'critic' is null: build_modules makes it first");
}

TEST(TaskModules, AModuleBelongsToOneOwner) {
  const auto refused = [](const std::function<std::vector<TaskModule>(Net&)>& build) {
    Net net;
    Owning task([&](ModelBase& model) { return build(dynamic_cast<Net&>(model)); });
    return error_of([&] { add_task_modules(net, task); });
  };
  EXPECT_THAT(refused([](Net& net) {
                return std::vector<TaskModule>{{.name = "copy", .module = net.block.ptr()}};
              }),
              HasSubstr("'task.copy' is the model's 'block'"));
  EXPECT_THAT(refused([](Net& net) {
                auto around = std::make_shared<torch::nn::Module>();
                around->register_module("inner", net.head.ptr());
                return std::vector<TaskModule>{{.name = "around", .module = around}};
              }),
              HasSubstr("'task.around.inner' is the model's 'head'"));
  EXPECT_THAT(refused([](Net&) {
                const auto shared = block();
                return std::vector<TaskModule>{{.name = "one", .module = shared},
                                               {.name = "two", .module = shared}};
              }),
              HasSubstr("'task.two' is 'task.one'"));
  const auto net = std::make_shared<Net>();
  Owning task({{.name = "whole", .module = net}});
  EXPECT_THAT(error_of([&] { add_task_modules(*net, task); }),
              HasSubstr("'task.whole' is the model itself"));
}

TEST(TaskModules, AModelWithAChildOfTheirNameIsRefused) {
  Net net;
  net.register_module("task", Block());
  Owning none(std::vector<TaskModule>{});
  EXPECT_THAT(error_of([&] { add_task_modules(net, none); }),
              HasSubstr("the model has a module 'task'"));
  EXPECT_THAT(
      error_of([&] { require_no_task_child(net); }),
      AllOf(HasSubstr("by another name"), HasSubstr("checkpoint.load_prefixes={task.: NEW.}")));
}

TEST(TaskModules, FreezingTheWholeModelLeavesThemToTrain) {
  Net net;
  Owning task({{.name = "probe", .module = block()}});
  add_task_modules(net, task);
  freeze_parameters(net, {.freeze = {.patterns = {"embed.*", "block.*", "head.*"}, .field = "f"}});
  EXPECT_THAT(names_of(parameter_groups(net, {}).at(0).parameters),
              ElementsAre("task.probe.weight"));
  EXPECT_THAT(
      error_of([&] { freeze_parameters(net, {.freeze = {.patterns = {"*"}, .field = "f"}}); }),
      HasSubstr("freezes all parameters"));
}

TEST(TaskModules, AreAboveTheModelWhereRatesFallByLayer) {
  Net net;
  Owning task({{.name = "critic", .module = block()}});  // a unit, as those of the model
  add_task_modules(net, task);
  ParameterRules rules;
  rules.layer_lr_decay = 0.5;
  for (const ParameterGroup& group : parameter_groups(net, rules)) {
    const double expected = group.parameters.front().name.starts_with("embed")   ? 0.25
                            : group.parameters.front().name.starts_with("block") ? 0.5
                                                                                 : 1;
    EXPECT_EQ(group.lr_scale, expected) << group.label;
  }
}

TEST(TaskModules, AreTrainedAndKeptWholeBesideAdapters) {
  auto net = std::make_shared<Net>();
  add_adapters(*net, {"head"}, {.rank = 1, .scale = 1, .dropout = 0}, "lora.target_modules");
  const auto task = std::make_shared<Owning>(std::vector<TaskModule>{
      {.name = "critic", .module = Linear(2, 1, LinearOptions{.has_bias = false}).ptr()},
      {.name = "teacher", .module = block(), .is_trained = false}});
  add_task_modules(*net, *task);
  EXPECT_THAT(names_of(adaptable_modules(*net)), ElementsAre("head"));
  const TaskModel model(task, net);
  EXPECT_THAT(names_of(model.views()),
              ElementsAre("head.lora_A.weight", "head.lora_B.weight", "task.critic.weight",
                          "task.teacher.weight", "block.scale", "task.teacher.scale"));
  EXPECT_THAT(names_of(model.base_views()),
              ElementsAre("embed.weight", "block.weight", "head.weight", "block.scale"));
  freeze_parameters(*net, {.freeze = {.patterns = {"task.critic.*"}, .field = "f"}});
  EXPECT_THAT(names_of(model.views()), IsSupersetOf({"task.critic.weight"})) << "frozen, and kept";
}

}  // namespace
}  // namespace phalanx
