// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/host/cores.h"

namespace phalanx {
namespace {

using Server = AgentSettings::Server;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

AgentSettings settings(std::vector<std::string> flags) {
  return agent_settings({.arguments = {}, .flags = std::move(flags), .program = {}});
}

std::string refusal(std::vector<std::string> flags) {
  try {
    settings(std::move(flags));
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(LaunchOptions, OneRankOfOneNodeIsTheDefault) {
  const AgentSettings one = settings({});
  EXPECT_EQ(one.ranks, 1);
  EXPECT_EQ(one.max_nodes, 1);
  EXPECT_EQ(one.host, "127.0.0.1");
  EXPECT_EQ(one.port, 0) << "a free one: several launches of one host do not meet";
  EXPECT_EQ(one.server, Server::here);
  EXPECT_EQ(one.run_id, "none");
  EXPECT_EQ(one.max_restarts, 0);
}

TEST(LaunchOptions, StaticNodesAreToldTheirRanks) {
  const std::vector<std::string> common{"--nnodes=2", "--master-addr=node0"};
  auto first = common;
  first.emplace_back("--node-rank=0");
  const AgentSettings server = settings(first);
  EXPECT_EQ(std::pair(server.host, server.port), std::pair(std::string("node0"), uint16_t{29500}));
  EXPECT_EQ(server.server, Server::here);
  auto second = common;
  second.insert(second.end(), {"--node-rank=1", "--master-port=1234"});
  EXPECT_EQ(settings(second).server, Server::elsewhere);
  EXPECT_EQ(settings(second).port, 1234);
}

TEST(LaunchOptions, NodesOfC10dComeAsTheyCome) {
  const AgentSettings two = settings({"--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-id=job7",
                                      "--rdzv-endpoint=[fe80::1]:1234", "--max-restarts=3"});
  EXPECT_EQ(std::pair(two.min_nodes, two.max_nodes), std::pair(int64_t{2}, int64_t{4}));
  EXPECT_EQ(std::pair(two.host, two.port), std::pair(std::string("fe80::1"), uint16_t{1234}));
  EXPECT_EQ(two.server, Server::automatic);
  EXPECT_EQ(two.node_rank, std::nullopt);
  EXPECT_EQ(two.run_id, "job7");
  EXPECT_EQ(two.max_restarts, 3);
  EXPECT_EQ(settings({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0"}).port, 29400);
}

TEST(LaunchOptions, CountCoresAndNotHardwareThreads) {
  ::setenv("HWLOC_SYNTHETIC", "core:3 pu:2", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const int64_t cores = std::min<int64_t>(3, std::max<int64_t>(cpu_quota(), 1));
  EXPECT_EQ(settings({"--nproc-per-node=cpu"}).ranks, cores);
  EXPECT_EQ(settings({"--nproc-per-node=auto"}).ranks, cores);
  ::unsetenv("HWLOC_SYNTHETIC");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(LaunchOptions, StandaloneRunsHaveNamesOfTheirOwn) {
  EXPECT_NE(settings({"--standalone"}).run_id, settings({"--standalone"}).run_id);
  EXPECT_THAT(refusal({"--standalone", "--nnodes=2"}), HasSubstr("--standalone is for one node"));
}

TEST(LaunchOptions, TheBackendHasOptionsOfItsOwn) {
  const AgentSettings given =
      settings({"--rdzv-conf=join_timeout=60,last_call_timeout=0.5,close_timeout=9,"
                "keep_alive_interval=2,keep_alive_max_attempt=4,is_host=false"});
  EXPECT_EQ(given.join_timeout, seconds(60));
  EXPECT_EQ(given.last_call_timeout, milliseconds(500));
  EXPECT_EQ(given.close_timeout, seconds(9));
  EXPECT_EQ(given.keep_alive_timeout, seconds(8));
  EXPECT_EQ(given.server, Server::elsewhere);
  EXPECT_THAT(refusal({"--rdzv-conf=join_time=3"}),
              HasSubstr("unknown option of --rdzv-conf 'join_time'; did you mean 'join_timeout'? "
                        "There are: join_timeout, "));
  EXPECT_THAT(refusal({"--rdzv-conf=join_timeout"}), HasSubstr("join_timeout=VALUE"));
  EXPECT_THAT(refusal({"--rdzv-conf=is_host=maybe"}), HasSubstr("neither true nor false"));
}

TEST(LaunchOptions, LogsAreChosenPerLocalRank) {
  const LogSettings logs = settings({"--nproc-per-node=2", "--log-dir=logs", "--redirects=0:3",
                                     "--tee=1:1", "--local-ranks-filter=1"})
                               .logs;
  EXPECT_EQ(logs.folder, "logs");
  EXPECT_TRUE(logs.to_files.has_err(0) && logs.to_both.has_out(1));
  EXPECT_EQ(logs.shown_ranks, std::set<int64_t>{1});
  EXPECT_THAT(refusal({"--local-ranks-filter=1"}), HasSubstr("from 0 to 0"));
}

TEST(LaunchOptions, AVariableStandsForAFlagThatIsMissing) {
  ::setenv("PET_NPROC_PER_NODE", "3", 1);
  ::setenv("PET_MAX_RESTARTS", "many", 1);
  EXPECT_EQ(settings({"--max-restarts=1"}).ranks, 3);
  EXPECT_THAT(refusal({}), HasSubstr("PET_MAX_RESTARTS='many': not a whole number"));
  ::unsetenv("PET_NPROC_PER_NODE");
  ::unsetenv("PET_MAX_RESTARTS");
}

TEST(LaunchOptions, WhatCannotBeIsRefusedByItsName) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--nproc-per-node=0"}, "--nproc-per-node='0': write a number from 1"},
      {{"--nproc-per-node=gpu"}, "no NVIDIA GPU"},
      {{"--nnodes=0"}, "--nnodes='0'"},
      {{"--nnodes=3:2"}, "--nnodes='3:2'"},
      {{"--nnodes=1:2:3"}, "the fewest and the most"},
      {{"--nnodes=1:2"}, "--rdzv-backend=c10d can have"},
      {{"--nnodes=2", "--node-rank=0"}, "--master-addr is missing"},
      {{"--nnodes=2", "--master-addr=a"}, "--node-rank is missing"},
      {{"--nnodes=2", "--master-addr=a", "--node-rank=2"}, "--node-rank='2'"},
      {{"--nnodes=2", "--rdzv-backend=c10d"}, "--rdzv-endpoint is missing"},
      {{"--rdzv-backend=etcd"}, "--rdzv-backend"},
      {{"--rdzv-endpoint=:80"}, "write HOST"},
      {{"--rdzv-endpoint=[::1"}, "not closed"},
      {{"--rdzv-endpoint=a:99999"}, "65535"},
      {{"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=a:0"}, "for one node"},
      {{"--monitor-interval=0"}, "--monitor-interval='0'"},
      {{"--redirects=4"}, "--redirects='4'"},
      {{"--numa-binding=nodes"}, "unknown value of --numa-binding 'nodes'"},
  };
  for (const auto& [flags, message] : mistakes) {
    EXPECT_THAT(refusal(flags), HasSubstr(message)) << flags.back();
  }
}

}  // namespace
}  // namespace phalanx
