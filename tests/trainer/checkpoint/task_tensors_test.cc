// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/task_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

Contents contents_of(const std::vector<std::pair<std::string, std::string>>& tensors) {
  Contents contents;
  for (const auto& [part, name] : tensors) contents.tensors.push_back({.part = part, .name = name});
  return contents;
}

std::vector<ShardedTensorView> views_of(const std::vector<std::string>& names) {
  std::vector<ShardedTensorView> views;
  for (const auto& name : names)
    views.push_back(whole_tensor(name, tensors::arange(2, at::kFloat)));
  return views;
}

std::vector<std::string> names_of(const auto& named) {
  std::vector<std::string> names;
  for (const auto& each : named) names.push_back(each.name);
  return names;
}

TEST(TaskTensors, OfModulesThatTheModelLacksAreLeftOut) {
  Contents contents = contents_of({{"model", "wte.weight"},
                                   {"model", "task.critic.weight"},
                                   {"model", "task.critics.weight"},
                                   {"model", "task.head.weight"},
                                   {"model", "task.head.old"},
                                   {"optimizer", "task.critic.weight.momentum"}});
  const auto left_out = leave_out_unknown_modules(contents, views_of({"task.head.weight"}));
  EXPECT_THAT(left_out, ElementsAre("task.critic", "task.critics"));
  EXPECT_THAT(
      names_of(contents.tensors),
      ElementsAre("wte.weight", "task.head.weight", "task.head.old", "task.critic.weight.momentum"))
      << "whole modules of the model alone";
}

TEST(TaskTensors, OfModulesThatTheContentsLackAreLeftOut) {
  auto views = views_of({"wte.weight", "task.critic.weight", "task.head.weight", "task.head.new"});
  const auto left_out = leave_out_absent_modules(
      views, contents_of({{"model", "task.head.weight"}, {"optimizer", "task.critic.weight"}}));
  EXPECT_THAT(left_out, ElementsAre("task.critic"));
  EXPECT_THAT(names_of(views), ElementsAre("wte.weight", "task.head.weight", "task.head.new"));
}

TEST(TaskTensors, StayWhereBothHaveThem) {
  Contents contents = contents_of({{"model", "task.head.weight"}});
  auto views = views_of({"task.head.weight"});
  EXPECT_THAT(leave_out_unknown_modules(contents, views), IsEmpty());
  EXPECT_THAT(leave_out_absent_modules(views, contents), IsEmpty());
  EXPECT_EQ(contents.tensors.size(), 1u);
  EXPECT_EQ(views.size(), 1u);
}

TEST(TaskTensors, APlaceOfWeightsThatIsNotThereIsToldWithItsModule) {
  EXPECT_THAT([] { sources_of({.name = "teacher", .load_from = "nowhere"}); },
              ThrowsMessage<UserError>(HasSubstr("the task's module 'teacher', load_from: ")));
}

}  // namespace
}  // namespace phalanx
