// SPDX-License-Identifier: Apache-2.0
// What a mixin has checkpoints keep.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/api/stateful.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/load.h"
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

class Nothing : public Stateful {
 public:
  void restore(std::string_view) override { ADD_FAILURE() << "no checkpoint holds it"; }
};

class Refusing : public Counter {
 public:
  void restore(std::string_view) override { throw UserError("the count cannot be read"); }
};

/// A schedule that counts.
class Counted : public Schedule {
 public:
  Stateful* kept_state() override { return &counter; }

  Counter counter;
};

class KeptState : public ::testing::Test {
 protected:
  // Trains to this step with these states; returns what is said.
  std::string train(int64_t steps, const std::vector<NamedStateful>& states,
                    const Parts& parts = {}) {
    StopSignal::install();
    spy = {};
    spy.at_restore = [&](TrainerBase& trainer) {
      for (const auto& [name, state] : states) trainer.keep_state(name, *state);
    };
    Saving trainer(make_setup(
        parts, {.max_steps = steps, .batch_size = 4},
        {.name = "tiny", .exp_dir = run_.path().string()},
        {{"spy", {}, config::Node::map()}, {"checkpoint", {}, config::write(CheckpointConfig{})}}));
    ::testing::internal::CaptureStdout();
    try {
      trainer.train();
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
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

TEST_F(KeptState, IsRefusedUnderANameThatNoPartCanHave) {
  Counter counter;
  for (const std::vector<NamedStateful>& states : {std::vector<NamedStateful>{{"a/b", &counter}},
                                                   {{"model", &counter}},
                                                   {{"twice", &counter}, {"twice", &counter}}}) {
    EXPECT_THROW(train(2, states), std::logic_error) << states.front().name;
    EXPECT_THAT(spy.events, ::testing::Not(::testing::Contains("step start")));
  }
}

TEST_F(KeptState, ThatBringsNothingIsNotSpokenOf) {
  Nothing nothing;
  EXPECT_EQ(train(2, {{"nothing", &nothing}}), "");
  EXPECT_EQ(train(4, {{"nothing", &nothing}}), "");
}

TEST_F(KeptState, ThatCannotBeReadIsToldWithARemedy) {
  Refusing refusing;
  train(2, {{"counter", &refusing}});
  try {
    train(4, {{"counter", &refusing}});
    ADD_FAILURE() << "it is refused";
  } catch (const UserError& error) {
    const std::string path = (run_.path() / "checkpoints/step-00000002").string();
    EXPECT_EQ(std::string(error.what()),
              "the count cannot be read (the part 'counter' of step-00000002): a new run can begin "
              "with its model alone, by checkpoint.load_from=" +
                  path + " checkpoint.load_model_only=true and another exp_dir");
  }
}

TEST_F(KeptState, OfAScheduleHasItsName) {
  const auto schedule = std::make_shared<Counted>();
  schedule->counter.count = 3;
  train(2, {}, {.schedule = schedule});
  const Manifest manifest = open_checkpoint(run_.path() / "checkpoints/step-00000002").manifest;
  EXPECT_EQ(manifest.parts.at("lr_scheduler"), R"({"name":"tiny","state":{"count":3}})");
  train(4, {}, {.schedule = schedule});
  EXPECT_EQ(schedule->counter.restored, R"({"count":3})");
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
