// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/unit_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/models.h"
#include "trainer/base/user_error.h"
#include "trainer/parallel/fsdp/fsdp_options.h"

namespace phalanx::fsdp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::Net;

using Names = std::vector<std::string>;

// Names of parameters by name of unit; "whole" for those that each rank keeps.
std::map<std::string, Names> planned(const FsdpOptions& options) {
  Net net;
  std::map<std::string, Names> names;
  for (const auto& unit : plan_units(net, options)) {
    Names& of_unit = names[unit.is_whole ? "whole" : unit.name];
    for (const auto& parameter : unit.parameters) of_unit.push_back(parameter.name);
  }
  return names;
}

FsdpOptions with(WrapPolicy policy, int64_t min_params = 1, Names names = {}) {
  FsdpOptions options;
  options.auto_wrap = {.policy = policy, .min_params = min_params, .names = std::move(names)};
  return options;
}

std::string refusal(const FsdpOptions& options) {
  try {
    planned(options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PlanUnits, GivesEachParameterToTheInnermostUnit) {
  const auto units = planned({});
  EXPECT_THAT(units.at("second"), ElementsAre("second.inner.weight", "second.inner.bias",
                                              "second.outer.weight", "second.outer.bias"));
  EXPECT_THAT(units.at("nest"), ElementsAre("nest.gain", "nest.empty"));
  EXPECT_EQ(units.at("nest.block").size(), 4);
  EXPECT_EQ(units.size(), 7);  // first, second, nest, nest.block, optional, unused, the root
}

TEST(PlanUnits, PutsWhatUnitsShareIntoWhatIsAroundThem) {
  EXPECT_THAT(planned({}).at(""), ElementsAre("embedding", "scale", "frozen", "first.tied"));
}

TEST(PlanUnits, MayLeaveAllToTheRoot) {
  const auto units = planned(with(WrapPolicy::none));
  EXPECT_EQ(units.size(), 1);
  EXPECT_THAT(units.at(""), IsSupersetOf({"embedding", "nest.block.inner.bias", "first.tied"}));
}

TEST(PlanUnits, MergesUnitsBelowASizeIntoWhatIsAroundThem) {
  // A block has 172 parameters, and 7 that are tied; the nest 7 of its own.
  EXPECT_EQ(planned(with(WrapPolicy::size, 172)).size(), 6);  // the nest's go to the root
  EXPECT_EQ(planned(with(WrapPolicy::size, 175)).size(),
            4);  // first and second, with the tied; the nest with its block; the root
  EXPECT_EQ(planned(with(WrapPolicy::size, 180)).size(), 1);
}

TEST(PlanUnits, ChoosesByNameOrClass) {
  EXPECT_EQ(planned(with(WrapPolicy::by_name, 1, {"Nest", "f*"})).size(), 3);
  EXPECT_EQ(planned(with(WrapPolicy::by_name, 1, {"Block"})).size(), 6);
  EXPECT_THAT(refusal(with(WrapPolicy::by_name, 1, {"h.*"})),
              HasSubstr("no unit of the model matches 'h.*'; there are: first (Block), second"));
}

TEST(PlanUnits, KeepsIgnoredModulesWhole) {
  FsdpOptions options;
  options.ignored_modules = {"second", "nest"};
  const auto units = planned(options);
  EXPECT_THAT(units.at("whole"), IsSupersetOf({"second.inner.weight", "nest.block.inner.bias"}));
  EXPECT_FALSE(units.contains("nest.block"));
  options.ignored_modules = {"third"};
  EXPECT_THAT(refusal(options), HasSubstr("the model has no module 'third'; there are: first,"));
}

}  // namespace
}  // namespace phalanx::fsdp
