// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/keys_of_trainers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What is said of a file with these lines; empty: nothing.
std::string told(Spreading spreading, const std::string& yaml) {
  config::Diagnostics mistakes;
  const config::Node tree = config::parse_yaml("name: mine\n" + yaml, "mine.yaml", mistakes);
  mistakes.throw_if_any();
  try {
    refuse_keys_of_others(tree, spreading);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(KeysOfTrainers, SayWhatTheTrainerDoesInsteadAndWhichOneHasTheKey) {
  EXPECT_THAT(told(Spreading::parameter_servers, "parallel: {use_fsdp: true}"),
              StartsWith("mine.yaml:2:12: parallel.use_fsdp: the trainer mine spreads gradients "
                         "and weights by its servers, and not by DDP or FSDP; leave it out (on the "
                         "command line: ~parallel.use_fsdp), or choose name: supervised\n"));
  EXPECT_THAT(told(Spreading::remote_embeddings, "strategy: ddp"),
              StartsWith("mine.yaml:2:1: strategy: the trainer mine has the last ranks hold the "
                         "embeddings and the others train in DDP, with DDP's defaults; leave it "
                         "out (on the command line: ~strategy), or choose name: supervised\n"));
  EXPECT_THAT(told(Spreading::stages, "parallel: {servers: 2}"),
              HasSubstr("parallel.servers: the trainer mine divides the model into stages, and has "
                        "no servers; leave it out (on the command line: ~parallel.servers), or "
                        "choose name: parameter_server or ddp_with_remote_embedding"));
  EXPECT_THAT(told(Spreading::data_parallel, "parallel: {updates: asynchronous}"),
              HasSubstr("parallel.updates: the trainer mine spreads the work by DDP or FSDP, and "
                        "has no servers; leave it out (on the command line: ~parallel.updates), or "
                        "choose name: parameter_server"));
}

TEST(KeysOfTrainers, NameTheTrainersThatHaveAdapters) {
  EXPECT_THAT(told(Spreading::remote_embeddings, "lora: {r: 4}"),
              HasSubstr("lora: the trainer mine trains all weights, without adapters; leave it out "
                        "(on the command line: ~lora), or choose name: supervised, "
                        "parameter_server or pipeline"));
  EXPECT_EQ(told(Spreading::stages, "lora: {r: 4}"), "");
}

TEST(KeysOfTrainers, AreRefusedAllAtOnce) {
  const std::string all = told(Spreading::parameter_servers,
                               "parallel:\n  ddp: {static_graph: true}\n  sharding_strategy: "
                               "FULL_SHARD\nstrategy: fsdp");
  EXPECT_THAT(all, HasSubstr("mine.yaml:3:3: parallel.ddp: "));
  EXPECT_THAT(all, HasSubstr("mine.yaml:4:3: parallel.sharding_strategy: "));
  EXPECT_THAT(all, HasSubstr("mine.yaml:5:1: strategy: "));
  EXPECT_THAT(all, HasSubstr("3 mistakes in the config"));
}

TEST(KeysOfTrainers, AreRefusedInTheirShortFormsToo) {
  for (const char* yaml : {"parallel: fsdp", "parallel: {preset: ddp}", "parallel: {name: ddp}",
                           "strategy: {name: fsdp}", "strategy: null"}) {
    EXPECT_THAT(told(Spreading::parameter_servers, yaml), HasSubstr("and not by DDP or FSDP"))
        << yaml;
    EXPECT_EQ(told(Spreading::data_parallel, yaml), "") << yaml;
  }
}

TEST(KeysOfTrainers, OfTheTrainerItselfPass) {
  EXPECT_EQ(told(Spreading::parameter_servers, "parallel: {servers: 2, updates: synchronous}"), "");
  EXPECT_EQ(told(Spreading::parameter_servers, "parallel: {sparse_embeddings: true}"), "");
  EXPECT_EQ(told(Spreading::remote_embeddings, "parallel: {servers: 2, tables: [wte]}"), "");
  EXPECT_EQ(told(Spreading::stages, "parallel: {timeout: 5min, numa_binding: none}"), "");
  EXPECT_EQ(told(Spreading::stages, "parallel: null"), "");
  EXPECT_EQ(told(Spreading::data_parallel, "strategy: ddp\nparallel: {device: cpu}"), "");
}

}  // namespace
}  // namespace phalanx
