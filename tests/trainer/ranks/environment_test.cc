// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

VariableLookup lookup_in(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string error_of(const Variables& variables, const std::string& launcher = "") {
  try {
    find_environment(lookup_in(variables), launcher);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"}};

Variables with(const std::string& name, const std::string& value) {
  Variables variables = kTorchrun;
  variables[name] = value;
  return variables;
}

Variables without(const std::string& name) {
  Variables variables = kTorchrun;
  variables.erase(name);
  return variables;
}

TEST(Environment, ReadsTorchruns) {
  const Environment expected{.rank = 3,
                             .world_size = 4,
                             .local_rank = 1,
                             .local_world_size = 2,
                             .master_addr = "node0",
                             .master_port = 29500,
                             .agent_store = true,
                             .restart_count = 2,
                             .launcher = "torch"};
  EXPECT_EQ(find_environment(lookup_in(kTorchrun)), expected);
}

TEST(Environment, IsNoneWithoutALauncher) {
  const Variables none{{"MASTER_ADDR", "left over"}, {"SLURM_JOB_ID", "7"}, {"PMIX_RANK", "0"}};
  EXPECT_EQ(find_environment(lookup_in(none)), std::nullopt);
}

TEST(Environment, AWorldOfOneNeedsNoAddress) {
  const Variables one{{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  EXPECT_EQ(find_environment(lookup_in(one)), (Environment{.launcher = "torch"}));
}

TEST(Environment, LocalRanksMayFollowFromTheHosts) {
  Variables variables = without("LOCAL_RANK");
  variables.erase("LOCAL_WORLD_SIZE");
  auto place = find_environment(lookup_in(variables));
  EXPECT_EQ(place->local_rank, kFromHosts);
  EXPECT_EQ(place->local_world_size, kFromHosts);
  place = find_environment(lookup_in(without("LOCAL_WORLD_SIZE")));
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_world_size, kFromHosts);
}

TEST(Environment, RankZeroNeedsNoAddressOfItsOwnStore) {
  Variables variables = without("MASTER_ADDR");
  EXPECT_THAT(error_of(variables), HasSubstr("MASTER_ADDR is not set"));
  variables["RANK"] = "0";
  EXPECT_THAT(error_of(variables), HasSubstr("MASTER_ADDR is not set"));  // The agent serves it.
  variables.erase("TORCHELASTIC_USE_AGENT_STORE");
  EXPECT_EQ(find_environment(lookup_in(variables))->master_addr, "");
}

TEST(Environment, EachMissingVariableIsNamed) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(error_of(without(name)),
                HasSubstr("the environment variable " + std::string(name) + " is not set"));
    EXPECT_THAT(error_of(with(name, "")), HasSubstr(std::string(name) + " is not set"));
  }
  EXPECT_THAT(error_of({{"WORLD_SIZE", "2"}}), HasSubstr("variable RANK is not set"));
}

TEST(Environment, EachWrongVariableIsNamed) {
  EXPECT_THAT(error_of(with("RANK", "two")), HasSubstr("RANK is 'two', which is no whole number"));
  EXPECT_THAT(error_of(with("RANK", "1 ")), HasSubstr("RANK is '1 ', which is no whole number"));
  EXPECT_THAT(error_of(with("RANK", "-1")), HasSubstr("RANK is -1, but must lie from 0 to"));
  EXPECT_THAT(error_of(with("WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE is 0, but must lie from 1"));
  EXPECT_THAT(error_of(with("MASTER_PORT", "70000")),
              HasSubstr("MASTER_PORT is 70000, but must lie from 1 to 65535"));
}

TEST(Environment, ContradictionsAreNamed) {
  EXPECT_THAT(error_of(with("RANK", "4")),
              HasSubstr("RANK is 4, but WORLD_SIZE is 4: ranks count"));
  EXPECT_THAT(error_of(with("LOCAL_RANK", "2")),
              HasSubstr("LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2"));
  EXPECT_THAT(error_of(with("LOCAL_WORLD_SIZE", "5")),
              HasSubstr("LOCAL_WORLD_SIZE is 5, more than WORLD_SIZE, which is 4"));
}

TEST(Environment, IsReadBackAsExported) {
  Environment environment = *find_environment(lookup_in(kTorchrun));
  environment.agent_store = false;  // what only torchrun says of itself
  environment.restart_count = 0;
  export_environment(environment);
  EXPECT_EQ(read_environment(), environment);
}

}  // namespace
}  // namespace phalanx
