// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

config::Node parsed(const std::string& yaml, const std::string& override = "") {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(yaml, "my.yaml", diagnostics);
  if (!override.empty()) config::apply_override(tree, override, diagnostics);
  diagnostics.throw_if_any();
  return tree;
}

std::string resolved(const std::string& yaml, const std::string& override = "") {
  config::Node tree = parsed(yaml, override);
  resolve_strategy(tree);
  return config::print(tree);
}

TEST(Strategy, IsShortForFieldsOfParallel) {
  EXPECT_EQ(resolved("strategy: ddp"), "parallel:\n  use_fsdp: false\n");
  EXPECT_EQ(resolved("strategy: fsdp"), "parallel:\n  use_fsdp: true\n");
  EXPECT_EQ(resolved("strategy: none"), "parallel:\n  single_rank: true\n");
  EXPECT_EQ(resolved("strategy: {name: ddp}"), "parallel:\n  use_fsdp: false\n");
  EXPECT_EQ(resolved("name: x\nstrategy: null"), "name: x\n");
  EXPECT_EQ(resolved("name: x"), "name: x\n");
}

TEST(Strategy, HasTheFieldsOfTorchTnt) {
  EXPECT_EQ(
      resolved("strategy: {name: ddp, bucket_cap_mb: 5, static_graph: true, init_sync: false, "
               "sync_batchnorm: true}"),
      "parallel:\n  use_fsdp: false\n  ddp:\n    bucket_cap_mb: 5\n    static_graph: true\n"
      "  sync_module_states: false\n  sync_batchnorm: true\n");
  EXPECT_EQ(resolved("strategy: {name: fsdp, sharding_strategy: FULL_SHARD, cpu_offload: true, "
                     "mixed_precision: {param_dtype: bfloat16}, sync_module_states: false, "
                     "sync_batchnorm: true}"),
            "parallel:\n  use_fsdp: true\n  sharding_strategy: FULL_SHARD\n  cpu_offload: true\n"
            "  fsdp:\n    mixed_precision:\n      param_dtype: bfloat16\n"
            "  sync_module_states: false\n  sync_batchnorm: true\n");
}

TEST(Strategy, KeepsFieldsItDoesNotHaveWhereTheyWereWritten) {
  config::Node tree = parsed("strategy: {name: ddp, dim: 1}");
  resolve_strategy(tree);
  const config::Node* dim = tree.find_path("parallel.ddp.dim");
  ASSERT_NE(dim, nullptr);
  EXPECT_EQ(dim->origin.text(), "my.yaml:1");
}

TEST(Strategy, IsChosenOnTheCommandLine) {
  EXPECT_EQ(resolved("name: x", "strategy=fsdp"), "name: x\nparallel:\n  use_fsdp: true\n");
  EXPECT_EQ(resolved("strategy: ddp", "strategy.bucket_cap_mb=5"),
            "parallel:\n  use_fsdp: false\n  ddp:\n    bucket_cap_mb: 5\n");
}

TEST(Strategy, StandsBesideWhatParallelSaysOfDevicesAndTimes) {
  EXPECT_EQ(resolved("parallel: {device: cpu, timeout: 1m}\nstrategy: fsdp"),
            "parallel:\n  device: cpu\n  timeout: 1m\n  use_fsdp: true\n");
  EXPECT_EQ(resolved("parallel:\nstrategy: fsdp"), "parallel:\n  use_fsdp: true\n");
}

TEST(Strategy, StandsBesideFieldsThatItDoesNotSet) {
  EXPECT_EQ(resolved("strategy: ddp", "parallel.sync_batchnorm=true"),
            "parallel:\n  sync_batchnorm: true\n  use_fsdp: false\n");
  EXPECT_EQ(resolved("strategy: fsdp", "parallel.fsdp.auto_wrap.policy=unit"),
            "parallel:\n  fsdp:\n    auto_wrap:\n      policy: unit\n  use_fsdp: true\n");
  EXPECT_EQ(resolved("parallel: {fsdp: {mixed_precision: {reduce_dtype: float32}}}\n"
                     "strategy: {name: fsdp, mixed_precision: {param_dtype: bfloat16}}"),
            "parallel:\n  fsdp:\n    mixed_precision:\n      reduce_dtype: float32\n"
            "      param_dtype: bfloat16\n  use_fsdp: true\n");
  EXPECT_EQ(resolved("parallel: {ddp: null}\nstrategy: {name: ddp, bucket_cap_mb: 5}"),
            "parallel:\n  ddp:\n    bucket_cap_mb: 5\n  use_fsdp: false\n");
}

TEST(Strategy, StandsBesideTheSameName) {
  EXPECT_EQ(resolved("parallel: fsdp\nstrategy: {name: fsdp, forward_prefetch: true}"),
            "parallel:\n  use_fsdp: true\n  fsdp:\n    forward_prefetch: true\n");
  EXPECT_EQ(resolved("parallel: {use_fsdp: false}\nstrategy: ddp"),
            "parallel:\n  use_fsdp: false\n");
  EXPECT_EQ(resolved("parallel: {use_fsdp: false, single_rank: false}\nstrategy: ddp"),
            "parallel:\n  use_fsdp: false\n  single_rank: false\n");
}

TEST(Strategy, IsRefusedBesideAnother) {
  for (const char* parallel : {"fsdp", "{use_fsdp: true}", "{preset: fsdp}", "{name: fsdp}",
                               "{single_rank: true}", "{use_fsdp: '${other}'}"}) {
    EXPECT_THAT(
        [&] { resolved("parallel: " + std::string(parallel) + "\nstrategy: ddp"); },
        ThrowsMessage<UserError>(AllOf(HasSubstr("my.yaml:2:1: strategy: this and parallel"),
                                       HasSubstr("(my.yaml:1) contradict each other"))))
        << parallel;
  }
  EXPECT_THAT([] { resolved("parallel: {use_fsdp: true}\nstrategy: none"); },
              ThrowsMessage<UserError>(HasSubstr("this and parallel.use_fsdp (my.yaml:1)")));
  EXPECT_THAT([] { resolved("parallel: {use_fsdp: true}", "strategy=ddp"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("argument 'strategy=ddp'"),
                                             HasSubstr("parallel.use_fsdp (my.yaml:1)"))));
}

TEST(Strategy, IsRefusedBesideAFieldThatItSetsToo) {
  EXPECT_THAT(
      [] { resolved("parallel: {cpu_offload: true}\nstrategy: {name: fsdp, cpu_offload: false}"); },
      ThrowsMessage<UserError>(HasSubstr("this and what is given in my.yaml:1 both set "
                                         "parallel.cpu_offload; give one of the two")));
  EXPECT_THAT(
      [] {
        resolved(
            "parallel: {fsdp: {mixed_precision: {param_dtype: float16}}}\n"
            "strategy: {name: fsdp, mixed_precision: {param_dtype: bfloat16}}");
      },
      ThrowsMessage<UserError>(HasSubstr("both set parallel.fsdp.mixed_precision.param_dtype;")));
  EXPECT_THAT([] { resolved("parallel: {ddp: 3}\nstrategy: {name: ddp, bucket_cap_mb: 5}"); },
              ThrowsMessage<UserError>(HasSubstr("both set parallel.ddp.bucket_cap_mb;")));
}

TEST(Strategy, IsRefusedWithBothNamesOfAField) {
  for (const char* fields : {"init_sync: false, sync_module_states: true",
                             "sync_module_states: true, init_sync: false"}) {
    EXPECT_THAT([&] { resolved("strategy: {name: ddp, " + std::string(fields) + "}"); },
                ThrowsMessage<UserError>(
                    HasSubstr("both set parallel.sync_module_states (init_sync is another name of "
                              "it); give one of the two")))
        << fields;
  }
}

TEST(Strategy, IsRefusedWithoutAKnownName) {
  EXPECT_THAT([] { resolved("strategy: deepspeed"); },
              ThrowsMessage<UserError>(
                  HasSubstr("my.yaml:1:11: strategy: unknown strategy 'deepspeed'; there are: ")));
  EXPECT_THAT([] { resolved("strategy: {bucket_cap_mb: 5}"); },
              ThrowsMessage<UserError>(HasSubstr("names no strategy; give none, ddp, fsdp")));
  EXPECT_THAT([] { resolved("strategy: [ddp]"); },
              ThrowsMessage<UserError>(HasSubstr("names no strategy")));
  EXPECT_THAT([] { resolved("strategy: ${other}"); },
              ThrowsMessage<UserError>(HasSubstr("cannot be an interpolation")));
}

}  // namespace
}  // namespace phalanx
