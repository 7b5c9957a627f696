// SPDX-License-Identifier: Apache-2.0
// What a mixin has checkpoints keep.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/api/stateful.h"
#include "trainer/base/stop_signal.h"
#include "trainer/mixins/checkpoint_mixin.h"

namespace phalanx::tiny {
namespace {

// The spy comes first: what it keeps is there before the mixin restores.
using Saving = Trainer<Spy, CheckpointMixin>;

class Counter : public Stateful {
 public:
  std::string json() const override { return R"({"count":)" + std::to_string(count) + "}"; }
  void restore(std::string_view json) override { restored = std::string(json); }

  int64_t count = 0;
  std::optional<std::string> restored;
};

class KeptState : public ::testing::Test {
 protected:
  // Trains to this step with these states; returns what is said.
  std::string train(int64_t steps, const std::vector<NamedStateful>& states) {
    StopSignal::install();
    spy = {};
    spy.at_restore = [&](TrainerBase& trainer) {
      for (const auto& [name, state] : states) trainer.keep_state(name, *state);
    };
    Saving trainer(make_setup(
        Parts{}, {.max_steps = steps, .batch_size = 4},
        {.name = "tiny", .exp_dir = run_.path().string()},
        {{"spy", {}, config::Node::map()}, {"checkpoint", {}, config::write(CheckpointConfig{})}}));
    ::testing::internal::CaptureStdout();
    trainer.train();
    return ::testing::internal::GetCapturedStdout();
  }

  RunDir run_;
};

TEST_F(KeptState, ComesBack) {
  Counter counter;
  counter.count = 3;
  EXPECT_EQ(train(2, {{"counter", &counter}}), "");
  EXPECT_FALSE(counter.restored) << "a new run begins it anew";
  EXPECT_EQ(train(4, {{"counter", &counter}}), "");
  EXPECT_EQ(counter.restored, R"({"count":3})");
}

TEST_F(KeptState, BeginsAnewWhereTheCheckpointLacksIt) {
  Counter counter;
  train(2, {});
  EXPECT_EQ(train(4, {{"counter", &counter}}),
            "note: step-00000002 holds no state of counter: the run begins it anew at step 2\n");
  EXPECT_FALSE(counter.restored);
}

TEST_F(KeptState, EndsWhereTheRunLacksIt) {
  Counter counter;
  train(2, {{"counter", &counter}});
  EXPECT_EQ(train(4, {}),
            "note: step-00000002 also holds the state of counter, which this run does not use: the "
            "next checkpoints lack it\n");
  EXPECT_EQ(train(6, {}), "") << "said once";
}

}  // namespace
}  // namespace phalanx::tiny
