// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/averages_mixin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/api/task_model.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/averaged.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/loop/save_signal.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/validation_mixin.h"

namespace phalanx::tiny {
namespace {

struct Due {
  const char* what;
  AveragesConfig config;
  std::vector<int64_t> steps;
};

class AveragesDue : public ::testing::TestWithParam<Due> {};

// Ten steps, two an epoch.
TEST_P(AveragesDue, FollowsTheConfig) {
  std::vector<int64_t> due;
  for (int64_t step = 1; step <= 10; ++step) {
    const State state{.epoch = (step - 1) / 2, .step = step};
    if (GetParam().config.due(state, {.ends_epoch = step % 2 == 0})) due.push_back(step);
  }
  EXPECT_EQ(due, GetParam().steps);
}

INSTANTIATE_TEST_SUITE_P(
    , AveragesDue,
    ::testing::Values(Due{"by_default", {}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
                      Due{"every_fourth", {.every_n_steps = 4}, {4, 8}},
                      Due{"late", {.start = 8}, {8, 9, 10}},
                      Due{"every_third_late", {.start = 2, .every_n_steps = 3}, {2, 5, 8}},
                      Due{"every_epoch", {.every_n_epochs = 1}, {2, 4, 6, 8, 10}},
                      Due{"every_second_epoch_late", {.start = 2, .every_n_epochs = 2}, {4, 8}}),
    [](const auto& info) { return info.param.what; });

TEST(AveragesNeverDue, TellsWhereTheFirstWouldBe) {
  // Twenty steps, of four epochs.
  const auto never = [](const AveragesConfig& config) { return config.never_due(20, 5); };
  EXPECT_EQ(never({}), "");
  EXPECT_EQ(never({.start = 20}), "");
  EXPECT_EQ(never({.every_n_steps = 20}), "");
  EXPECT_EQ(never({.start = 4, .every_n_epochs = 3}), "");
  EXPECT_EQ(never({.start = 21}),
            "the run has 20 steps, and the first weights would be averaged after step 21: it keeps "
            "no average; lower averages.start");
  EXPECT_EQ(never({.every_n_steps = 30}),
            "the run has 20 steps, and the first weights would be averaged after step 30: it keeps "
            "no average; lower averages.every_n_steps");
  EXPECT_EQ(never({.every_n_epochs = 5}),
            "the run has 20 steps, and the first weights would be averaged after step 25: it keeps "
            "no average; lower averages.every_n_epochs");
  EXPECT_NE(never({.start = 5, .every_n_epochs = 1}), "");
}

// The spy comes last: it sees what the others have done.
using Averaging = Trainer<AveragesMixin, ValidationMixin, CheckpointMixin, Spy>;

class AveragesOfARun : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    SaveSignal::install();
    spy = {};
  }

  void train(const AveragesConfig& averages, int64_t steps = 6) {
    parts_ = Parts();
    trainer_ = std::make_unique<Averaging>(
        make_setup(parts_, {.max_steps = steps, .batch_size = 4},
                   {.name = "tiny", .exp_dir = run_.path().string()},
                   {{"averages", {}, config::write(averages)},
                    {"validation", {}, config::write(ValidationConfig{.every_n_steps = 3})},
                    {"checkpoint", {}, config::write(CheckpointConfig{.save_every_n_steps = 3})},
                    {"spy", {}, config::Node::map()}}));
    trainer_->train();
  }

  // The mean, as torch.optim.swa_utils computes it, of the weights of each step's end.
  void note_weights() {
    spy.at_step_end = [this](TrainerBase& trainer) {
      weights_.push_back(weights_of(trainer.model()));
      average_ = average_.empty() ? weights_.back() : average_;
      for (std::size_t i = 0; i < average_.size(); ++i) {
        average_[i] += (weights_.back()[i] - average_[i]) / static_cast<double>(weights_.size());
      }
    };
  }

  Checkpoint checkpoint(const char* step) const {
    return open_checkpoint(run_.path() / "checkpoints" / step);
  }

  // The weights that a reader of this checkpoint's model gets.
  static std::vector<double> model_in(const Checkpoint& checkpoint) {
    const auto model = make_model();
    load_model(checkpoint, TaskModel(nullptr, model).views());
    return weights_of(*model);
  }

  RunDir run_;
  Parts parts_;
  std::unique_ptr<Averaging> trainer_;
  std::vector<std::vector<double>> weights_;
  std::vector<double> average_;
};

// Weights are in single precision, the test's mean is not.
void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST_F(AveragesOfARun, AreInItsCheckpoints) {
  note_weights();
  train({.method = Averages::swa});
  EXPECT_EQ(model_in(checkpoint("step-00000006")), weights_.back());
  expect_near(model_in(with_averages(checkpoint("step-00000006"))), average_);
  EXPECT_NE(average_, weights_.back());
  EXPECT_THAT(note_of_averages(checkpoint("step-00000006")),
              ::testing::StartsWith("step-00000006 holds the weights and their average"));
}

TEST_F(AveragesOfARun, AreValidatedWhereThatIsAskedFor) {
  note_weights();
  std::vector<std::vector<double>> validated;
  spy.at_validation_batch_start = [&](TrainerBase& trainer) {
    validated.push_back(weights_of(trainer.model()));
  };
  train({.method = Averages::swa, .validate = true});
  ASSERT_FALSE(validated.empty());
  EXPECT_EQ(validated.back(), model_in(with_averages(checkpoint("step-00000006"))));
  EXPECT_NE(validated.back(), weights_.back());
}

TEST_F(AveragesOfARun, ChangeNothingOfTheTraining) {
  note_weights();
  train({});
  const auto weights = std::exchange(weights_, {});
  std::filesystem::remove_all(run_.path() / "checkpoints");
  train({.method = Averages::ema, .decay = 0.5, .validate = true});
  EXPECT_EQ(weights_, weights);
}

TEST_F(AveragesOfARun, AreTheSameAfterAResume) {
  const AveragesConfig config{.method = Averages::ema, .decay = 0.5, .validate = true};
  train(config);
  const std::vector<double> whole = model_in(with_averages(checkpoint("step-00000006")));
  std::filesystem::remove_all(run_.path() / "checkpoints");
  train(config, 4);
  train(config);
  EXPECT_EQ(model_in(with_averages(checkpoint("step-00000006"))), whole);
}

TEST_F(AveragesOfARun, DoNotStandInForTheWeightsInASaveWithinAValidation) {
  note_weights();
  bool is_asked = false;
  spy.at_validation_batch_start = [&](TrainerBase& trainer) {
    if (trainer.state().step == 3 && !std::exchange(is_asked, true)) std::raise(SIGUSR1);
  };
  std::optional<std::vector<double>> saved;
  spy.at_save_request = [&](TrainerBase& trainer) {
    saved = weights_of(trainer.model());
    EXPECT_EQ(model_in(checkpoint("step-00000003")), *saved);
  };
  train({.method = Averages::swa, .validate = true});
  ASSERT_TRUE(saved);
  EXPECT_EQ(*saved, weights_[2]);
}

TEST_F(AveragesOfARun, GiveTheWeightsBackWhereASignalEndsTheValidation) {
  spy.at_validation_batch_start = [](TrainerBase&) { std::raise(SIGTERM); };
  note_weights();
  train({.method = Averages::swa, .validate = true});
  EXPECT_EQ(trainer_->state().step, 3);
  EXPECT_EQ(weights_of(*parts_.model), weights_.back());
  EXPECT_EQ(model_in(checkpoint("step-00000003")), weights_.back());
}

TEST_F(AveragesOfARun, AreNoModelBeforeTheyBegin) {
  ::testing::internal::CaptureStdout();
  train({.method = Averages::swa, .start = 7});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              ::testing::HasSubstr("warning: the run has 6 steps, and the first weights would be "
                                   "averaged after step 7: it keeps no average; lower "
                                   "averages.start\n"));
  try {
    with_averages(checkpoint("step-00000006"));
    ADD_FAILURE() << "there is none";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("none were taken by its step (averages.start, "));
  }
  EXPECT_EQ(note_of_averages(checkpoint("step-00000006")), "");
  train({}, 7);
  EXPECT_EQ(note_of_averages(checkpoint("step-00000007")), "");
  EXPECT_THROW(with_averages(checkpoint("step-00000007")), UserError) << "they are not kept";
}

}  // namespace
}  // namespace phalanx::tiny
