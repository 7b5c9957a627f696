// SPDX-License-Identifier: Apache-2.0
// A step that guards undo may be the last one of an epoch or of the run: what is due then is done
// with what the run has gone back to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tests/trainer/loop/planted.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/metrics/sink.h"
#include "trainer/mixins/averages_mixin.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/guards_mixin.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Record> records;

class RecordingSink : public Sink {
 public:
  using Config = NoFields;
  explicit RecordingSink(Config) {}

  void open(const RunDescription&, std::optional<int64_t>) override {}
  void write(const Record& record) override { records.push_back(record); }
};

REGISTER_SINK("recording", RecordingSink);

// The spy comes last: it sees what the others have done.
using Guarded =
    Trainer<AveragesMixin, LoggingMixin, ValidationMixin, GuardsMixin, CheckpointMixin, Spy>;

/// How a run is.
struct Setting {
  std::optional<std::size_t> bad_batch = {};   ///< The one whose loss is no number.
  std::optional<std::size_t> best_batch = {};  ///< The one whose loss is the lowest.
  std::optional<int64_t> max_steps = {};       ///< The limit, instead of epochs.
  int64_t logged_every_n_steps = 100;
  ValidationConfig validation = {};
  AveragesConfig averages = {};
  CheckpointConfig checkpoint = {.save_every_n_steps = 2};
};

// An epoch has three steps.
class RollbackAtTheEnd : public ::testing::Test {
 protected:
  void train(const Setting& setting, int64_t epochs = 2) {
    TrainingConfig training{.max_steps = setting.max_steps, .batch_size = 4};
    if (!setting.max_steps) training.max_epochs = epochs;
    StopSignal::install();
    records.clear();
    std::map<std::size_t, double> planted;
    if (setting.bad_batch) planted[*setting.bad_batch] = std::numeric_limits<double>::quiet_NaN();
    if (setting.best_batch) planted[*setting.best_batch] = 1e-9;
    Parts parts;
    parts.task = std::make_shared<Planted>(planted);
    Guarded trainer(make_setup(
        parts, training, {.name = "tiny", .exp_name = "run", .exp_dir = run_.path().string()},
        {{"averages", {}, config::write(setting.averages)},
         {"logging",
          {},
          config::write(LoggingConfig{.every_n_steps = setting.logged_every_n_steps,
                                      .sinks = {"recording"}})},
         {"validation", {}, config::write(setting.validation)},
         {"guards", {}, config::write(GuardsConfig{.on_nonfinite = OnBadStep::rollback})},
         {"checkpoint", {}, config::write(setting.checkpoint)},
         {"spy", {}, config::Node::map()}}));
    trainer.train();
    state_ = trainer.state();
  }

  static std::vector<int64_t> steps_of(Phase phase) {
    std::vector<int64_t> steps;
    for (const Record& record : records) {
      if (record.phase == phase) steps.push_back(record.state.step);
    }
    return steps;
  }

  static double validated_loss(int64_t step) {
    const auto found = std::find_if(records.begin(), records.end(), [&](const Record& record) {
      return record.phase == Phase::validate && record.state.step == step;
    });
    return std::get<double>(found->fields.at(0).second);
  }

  Manifest saved(const char* step) const {
    return open_checkpoint(run_.path() / "checkpoints" / step).manifest;
  }

  void SetUp() override { spy = {}; }

  RunDir run_;
  State state_;
};

TEST_F(RollbackAtTheEnd, ValidatesAnEpochWhoseLastStepIsUndone) {
  train({.validation = {.every_n_steps = 2}});
  const double expected = validated_loss(2);
  std::filesystem::remove_all(run_.path() / "checkpoints");

  train({.bad_batch = 3, .validation = {.every_n_epochs = 1}});
  EXPECT_THAT(steps_of(Phase::validate), ElementsAre(2, 5));
  EXPECT_EQ(validated_loss(2), expected);
  EXPECT_EQ(state_.epoch, 2);
}

TEST_F(RollbackAtTheEnd, ValidatesNoStepTwiceThatWasValidatedByItsNumber) {
  train({.bad_batch = 3, .validation = {.every_n_steps = 2, .every_n_epochs = 1}});
  EXPECT_THAT(steps_of(Phase::validate), ElementsAre(2, 4, 5));
}

TEST_F(RollbackAtTheEnd, ValidatesAndLogsARunWhoseLastStepIsUndone) {
  train({.bad_batch = 6});
  EXPECT_THAT(steps_of(Phase::validate), ElementsAre(4));
  EXPECT_THAT(steps_of(Phase::train), ElementsAre(1, 4));
  EXPECT_EQ(records.back().state.samples, 20) << "the samples are left out, and counted";
  EXPECT_EQ(state_.step, 4);
  EXPECT_FALSE(saved("step-00000004").metrics.empty());
}

TEST_F(RollbackAtTheEnd, TellsNoLossOfAStepThatIsUndone) {
  for (const std::size_t best : {4, 5}) {
    ::testing::internal::CaptureStdout();
    train({.bad_batch = 6, .best_batch = best, .logged_every_n_steps = 1});
    const std::string text = ::testing::internal::GetCapturedStdout();
    std::filesystem::remove_all(run_.path() / "checkpoints");
    if (best == 4) {
      EXPECT_THAT(text, HasSubstr("\n  train loss  best 0.0000 at step 4\n"));
    } else {
      EXPECT_THAT(text, AllOf(HasSubstr("\n  train loss  best "), Not(HasSubstr("at step 5"))));
    }
  }
}

// A limit in steps counts those that are kept.
TEST_F(RollbackAtTheEnd, GoesOnToTheNumberOfSteps) {
  train({.bad_batch = 6, .max_steps = 6});
  EXPECT_EQ(state_.step, 6);
  EXPECT_EQ(state_.samples, 28) << "the samples of two steps are left out, and counted";
  EXPECT_THAT(steps_of(Phase::train), ElementsAre(1, 6));
  EXPECT_THAT(steps_of(Phase::validate), ElementsAre(6));
}

TEST_F(RollbackAtTheEnd, TakesTheWeightsOfAnEpochIntoAverages) {
  train({.bad_batch = 3, .averages = {.method = Averages::swa, .every_n_epochs = 1}});
  EXPECT_THAT(saved("step-00000005").parts.at("averages"), HasSubstr("\"updates\":2"));
}

TEST_F(RollbackAtTheEnd, SavesTheEpochsMetricsWhereTheBestAreKept) {
  NamedValues metrics;
  State place;
  spy.at_step_undone = [&](TrainerBase&) {
    metrics = saved("step-00000002").metrics;
    place = saved("step-00000002").state;
  };
  train({.bad_batch = 3,
         .validation = {.every_n_epochs = 1},
         .checkpoint = {.save_every_n_steps = 2, .keep_best = KeepBest{.metric = "loss"}}});
  EXPECT_FALSE(metrics.empty());
  EXPECT_EQ(place.epoch_samples, 10);
}

TEST_F(RollbackAtTheEnd, InTheMidstOfAnEpochEndsNothing) {
  train({.bad_batch = 5,
         .validation = {.every_n_epochs = 1},
         .averages = {.method = Averages::swa, .every_n_epochs = 1}});
  EXPECT_THAT(steps_of(Phase::validate), ElementsAre(3, 5));
  EXPECT_THAT(saved("step-00000005").parts.at("averages"), HasSubstr("\"updates\":2"));
}

}  // namespace
}  // namespace phalanx::tiny
