// SPDX-License-Identifier: Apache-2.0
// Compositions: which hooks run, in which order, and the schema that follows from the list.

#include "trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "trainer/base/stop_signal.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::string> calls;

struct FirstConfig {
  int64_t amount = 3;
  static void describe(config::Schema<FirstConfig>& s) {
    s.field("amount", &FirstConfig::amount, "how much").at_least(1);
  }
};

template <class Derived>
class First : public Mixin<Derived, First> {
 public:
  static constexpr std::string_view kSection = "first";
  static constexpr std::string_view kMeaning = "the first of two";
  using Config = FirstConfig;
  using Hooks = HookList<TrainingStart, StepEnd, TrainingEnd>;

  explicit First(Config config) : amount_(config.amount) {}

  void on_training_start(const State&) {
    calls.push_back("first starts with " + std::to_string(amount_));
  }
  void on_step_end(const State& state, const StepResult&) {
    calls.push_back("first step " + std::to_string(state.step));
  }
  void on_training_end(const State&) { calls.emplace_back("first ends"); }

 private:
  int64_t amount_;
};

template <class Derived>
class Second : public Mixin<Derived, Second> {
 public:
  static constexpr std::string_view kSection = "second";
  static constexpr std::string_view kMeaning = "the second of two";
  using Config = NoFields;
  using Hooks = HookList<Restore, TrainingStart, StepEnd, TrainingEnd>;
  using Requires = MixinList<First>;

  explicit Second(Config) {}

  void on_restore() { calls.emplace_back("second restores"); }
  void on_training_start(const State&) { calls.emplace_back("second starts"); }
  void on_step_end(const State&, const StepResult&) {
    calls.push_back("second step of " + std::to_string(*this->trainer().total_steps()));
  }
  void on_training_end(const State&) { calls.emplace_back("second ends"); }
};

template <class Derived>
class Third : public Mixin<Derived, Third> {
 public:
  static constexpr std::string_view kSection = "third";
  static constexpr std::string_view kMeaning = "has one hook";
  using Config = NoFields;
  using Hooks = HookList<TrainingEnd>;

  explicit Third(Config) {}
  void on_training_end(const State&) { calls.emplace_back("third ends"); }
};

using Composition = Trainer<First, Second, Third>;

TEST(Composition, RunsHooksInItsOrderAndClosingOnesInReverse) {
  StopSignal::install();
  calls.clear();
  std::vector<config::Entry> sections{{"first", {}, config::write(FirstConfig{.amount = 5})},
                                      {"second", {}, config::Node::map()},
                                      {"third", {}, config::Node::map()}};
  Composition trainer(make_setup(Parts{}, {.max_steps = 2, .batch_size = 4},
                                 {.name = "tiny", .exp_dir = "x"}, std::move(sections)));
  trainer.train();
  EXPECT_THAT(calls, ElementsAre("second restores", "first starts with 5", "second starts",
                                 "first step 1", "second step of 2", "first step 2",
                                 "second step of 2", "third ends", "second ends", "first ends"));
}

TEST(Composition, RunsEachHookAtItsPlace) {
  StopSignal::install();
  spy = {};
  Parts parts;
  // Six of ten samples a step: the second has four, and ends the epoch.
  make_spied(parts, {.max_steps = 3, .batch_size = 3, .gradient_accumulation_steps = 2})->train();
  const std::vector<std::string> step{"step start",     "before forward", "after loss",
                                      "before forward", "after loss",     "after backward",
                                      "step end"};
  std::vector<std::string> expected{"setup", "restore", "training start", "epoch start"};
  expected.insert(expected.end(), step.begin(), step.end());
  expected.insert(expected.end(), step.begin(), step.end());
  expected.insert(expected.end(), {"epoch end", "epoch start"});
  expected.insert(expected.end(), step.begin(), step.end());
  expected.emplace_back("training end");  // in the middle of the second epoch, which has no end
  EXPECT_THAT(spy.events, ElementsAreArray(expected));
  EXPECT_THAT(parts.task->calls, ElementsAre("epoch 0 starts", "step 1 ended", "step 2 ended",
                                             "epoch 1 starts", "step 3 ended"));
}

TEST(Composition, TellsMixinsOfAnError) {
  StopSignal::install();
  spy = {};
  spy.at_step_start = [](TrainerBase&) { throw std::runtime_error("what went wrong"); };
  const auto trainer = make_spied(Parts{}, {.max_steps = 1, .batch_size = 4});
  EXPECT_THAT([&] { trainer->train(); },
              ::testing::ThrowsMessage<std::runtime_error>("what went wrong"));
  EXPECT_EQ(spy.events.back(), "exception: what went wrong");
}

TEST(Composition, EndsAnEpochThatALimitEnds) {
  StopSignal::install();
  spy = {};
  make_spied(Parts{}, {.max_steps = 1, .batch_size = 10})->train();
  ASSERT_GE(spy.events.size(), 2u);
  EXPECT_EQ(spy.events[spy.events.size() - 2], "epoch end");
}

TEST(Composition, IsTheSchema) {
  const config::Declaration declaration = Composition::declaration();
  EXPECT_THAT(declaration.field_names(),
              ElementsAre("name", "exp_name", "exp_dir", "log_dir_name",
                          "use_double_weight_precision", "training", "about", "first", "second",
                          "third", "task", "model", "optimizer", "lr_scheduler", "optimizers"));
  const config::Field* first = declaration.find("first");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->meaning, "the first of two");
  ASSERT_NE(first->type.section->find("amount"), nullptr);
  EXPECT_TRUE(declaration.find("task")->mandatory);
  EXPECT_EQ(declaration.find("lr_scheduler")->type.choice->default_name, "constant");
}

}  // namespace
}  // namespace phalanx::tiny
