// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/init_method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

VariableLookup variables(std::map<std::string, std::string> set) {
  return [set = std::move(set)](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
}

TEST(InitMethod, NamesTheHostAndThePortOfTheStore) {
  const Environment environment = environment_at("tcp://node0:29500", 1, 4);
  EXPECT_EQ(environment.rank, 1);
  EXPECT_EQ(environment.world_size, 4);
  EXPECT_EQ(environment.local_rank, kFromHosts);
  EXPECT_EQ(environment.local_world_size, kFromHosts);
  EXPECT_EQ(environment.master_addr, "node0");
  EXPECT_EQ(environment.master_port, 29500);
  EXPECT_EQ(environment_at("tcp://[::1]:80", 0, 2).master_addr, "::1");
}

TEST(InitMethod, MayTakeThemFromVariables) {
  const Environment environment = environment_at(
      "env://", 0, 2, variables({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "81"}, {"RANK", "7"}}));
  EXPECT_EQ(environment.rank, 0) << "the call's";
  EXPECT_EQ(environment.master_addr, "node1");
  EXPECT_EQ(environment.master_port, 81);
  EXPECT_THAT(
      [] {
        environment_at("env://", 0, 2, variables({{"MASTER_ADDR", "node1"}}));
      },
      ThrowsMessage<UserError>(HasSubstr("MASTER_PORT")));
}

TEST(InitMethod, MayNameAFile) {
  const Environment environment = environment_at("file:///shared/meeting", 1, 2);
  EXPECT_EQ(environment.rank, 1);
  EXPECT_EQ(environment.local_rank, kFromHosts);
  EXPECT_EQ(store_file(environment), "/shared/meeting");
  EXPECT_EQ(store_file(environment_at("tcp://node0:29500", 1, 2)), "");
}

TEST(InitMethod, OfOneRankIsItsOwnHosts) {
  const Environment environment = environment_at("tcp://localhost:1", 0, 1);
  EXPECT_EQ(environment.local_rank, 0);
  EXPECT_EQ(environment.local_world_size, 1);
}

TEST(InitMethod, IsRefusedWhereItNamesNoPlace) {
  for (const char* method : {"tcp://node0", "tcp://:80", "tcp://node0:0", "tcp://node0:65536",
                             "tcp://node0:8x", "tcp://"}) {
    EXPECT_THAT([&] { environment_at(method, 0, 2); },
                ThrowsMessage<UserError>(HasSubstr("expected a host and a port")))
        << method;
  }
  for (const char* method : {"file://", "file://meeting", "file:///shared/", "file:///"}) {
    EXPECT_THAT([&] { environment_at(method, 0, 2); },
                ThrowsMessage<UserError>(HasSubstr("expected an absolute path of a file")))
        << method;
  }
  EXPECT_THAT(
      [] { environment_at("udp://a:1", 0, 2); },
      ThrowsMessage<UserError>(HasSubstr("there are: tcp://HOST:PORT, env:// and file:///PATH")));
  for (const int64_t rank : {-1, 2}) {
    EXPECT_THAT([&] { environment_at("tcp://a:1", rank, 2); },
                ThrowsMessage<UserError>(HasSubstr("outside of a world of 2")));
  }
}

}  // namespace
}  // namespace phalanx
