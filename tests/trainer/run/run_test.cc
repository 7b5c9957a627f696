// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/registry/trainers.h"
#include "trainer/trainer.h"

namespace phalanx::tiny {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

REGISTER_TRAINER("parallel_tiny", Trainer<ParallelMixin, CheckpointMixin>);

// Knows how many ranks it would start.
class Unused : public Launcher {
 public:
  explicit Unused(std::optional<int64_t> processes) : processes_(processes) {}
  RankOutcome launch(const RankMain&) override {
    ADD_FAILURE() << "launched";
    return {};
  }
  std::optional<Environment> environment() const override { return std::nullopt; }
  std::optional<int64_t> processes() const override { return processes_; }

 private:
  std::optional<int64_t> processes_;
};

constexpr const char* kHybrid =
    "parallel={use_fsdp: true, device: cpu, sharding_strategy: HYBRID_SHARD, ";

class RunTest : public CommandTest {
 protected:
  RunTest() {
    const std::string tiny = kConfig;
    write("parallel.yaml", "name: parallel_tiny" + tiny.substr(tiny.find('\n')));
  }

  static void start(std::optional<int64_t> processes, const std::string& override) {
    const std::vector<std::string> arguments{"parallel.yaml", "exp_dir=one", override};
    phalanx::Run(arguments, std::make_shared<Unused>(processes), "unused");
  }
};

TEST_F(RunTest, RefusesRanksThatDoNotFitBeforeOneIsStarted) {
  EXPECT_THAT([] { start(2, "strategy=none"); },
              ThrowsMessage<UserError>(HasSubstr("there are 2 ranks: choose strategy: ddp")));
  EXPECT_THAT([] { start(4, kHybrid + std::string("fsdp: {shard_group_size: 3}}")); },
              ThrowsMessage<UserError>(HasSubstr("parallel.fsdp.shard_group_size")));
  EXPECT_THAT([] { start(4, kHybrid + std::string("fsdp: {mesh: {replicate: 2, shard: 4}}}")); },
              ThrowsMessage<UserError>(HasSubstr("and there are 4 ranks")));
}

TEST_F(RunTest, TakesRanksThatFitOrAreNotKnownYet) {
  start(1, "strategy=none");
  start(std::nullopt, "strategy=none");  // refused once it is known how many there are
}

}  // namespace
}  // namespace phalanx::tiny
