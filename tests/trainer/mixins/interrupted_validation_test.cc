// SPDX-License-Identifier: Apache-2.0
// A validation that signals come into: it is given up, its step is saved, and the resumed run makes
// it first; a request to save is answered within it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/loop/save_signal.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/tensors/random.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The spy comes last: it sees what the others have done.
using Validated = Trainer<ValidationMixin, CheckpointMixin, Spy>;

CheckpointConfig at_end_alone() {
  return {.save_every_n_steps = std::nullopt, .keep_last = std::nullopt};
}

// Three steps are an epoch; a validation has three micro-batches. Dropout draws random numbers.
const TrainingConfig kTraining{.max_steps = 8, .batch_size = 4};

class InterruptedValidation : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    SaveSignal::install();
    spy = {};
  }

  std::unique_ptr<Validated> make(const Parts& parts, const ValidationConfig& validation,
                                  const CheckpointConfig& checkpoint,
                                  const TrainingConfig& training = kTraining) {
    return std::make_unique<Validated>(make_setup(parts, training,
                                                  {.name = "tiny", .exp_dir = run_.path().string()},
                                                  {{"validation", {}, config::write(validation)},
                                                   {"checkpoint", {}, config::write(checkpoint)},
                                                   {"spy", {}, config::Node::map()}}));
  }

  // A start with dropout and a seed of its own for what is not restored.
  State train(const ValidationConfig& validation, const CheckpointConfig& checkpoint,
              const TrainingConfig& training = kTraining, uint64_t seed = 1) {
    seed_everything(seed);
    parts_ = Parts{.model = make_model(/*dropout=*/0.3)};
    const auto trainer = make(parts_, validation, checkpoint, training);
    trainer->train();
    finished_ = trainer->finished();
    return trainer->state();
  }

  // Has a signal come before micro-batch `batch` of the validation of `step`.
  static void raise_within(int64_t step, int64_t batch, int signal) {
    auto seen = std::make_shared<int64_t>(0);
    spy.at_validation_batch_start = [=](TrainerBase& trainer) {
      if (trainer.state().step == step && ++*seen == batch) std::raise(signal);
    };
  }

  void begin_again() {
    StopSignal::install();
    spy = {};
  }

  Manifest manifest(int64_t step) const {
    return load_manifest(run_.path() / fmt::format("checkpoints/step-{:08d}", step));
  }

  static int64_t count_of(const std::string& event) {
    return std::ranges::count(spy.events, event);
  }

  void clear() { std::filesystem::remove_all(run_.path() / "checkpoints"); }

  RunDir run_;
  Parts parts_;
  bool finished_ = false;
};

void expect_same(const Manifest& a, const Manifest& b) {
  EXPECT_EQ(a.state.step, b.state.step);
  EXPECT_EQ(a.state.epoch, b.state.epoch);
  EXPECT_EQ(a.state.epoch_samples, b.state.epoch_samples);
  EXPECT_EQ(a.state.tokens, b.state.tokens);
  EXPECT_EQ(a.state.validation_due, b.state.validation_due);
  EXPECT_EQ(a.metrics, b.metrics);
}

// In the midst of an epoch, at the end of one, and after the last step of the run.
class AtStep : public InterruptedValidation, public ::testing::WithParamInterface<int64_t> {};

TEST_P(AtStep, IsGivenUpAndTheResumedRunMakesItFirst) {
  const int64_t step = GetParam();
  const TrainingConfig training{.max_steps = 6, .batch_size = 4};
  const ValidationConfig validation{.every_n_steps = step};
  train(validation, at_end_alone(), training);
  const std::vector<double> weights = weights_of(*parts_.model);
  auto validated = parts_.task->validated;
  validated.erase(validated.begin());  // The rehearsal: a run that resumes here makes none.
  const Manifest end = manifest(6);
  clear();

  begin_again();
  raise_within(step, 2, SIGTERM);
  const State stopped = train(validation, at_end_alone(), training);
  EXPECT_EQ(stopped.step, step);
  EXPECT_FALSE(finished_);
  EXPECT_THAT(parts_.task->validated, SizeIs(1 + 2)) << "it ends within a micro-batch";
  EXPECT_EQ(count_of("validation end"), 0);
  EXPECT_THAT(run_.checkpoints(), ElementsAre(fmt::format("step-{:08d}", step)));
  EXPECT_TRUE(manifest(step).state.validation_due);
  EXPECT_TRUE(manifest(step).metrics.empty());

  begin_again();
  train(validation, at_end_alone(), training, /*seed=*/77);
  EXPECT_TRUE(finished_);
  const auto first = std::ranges::find(spy.events, "validation start");
  const auto first_step = std::ranges::find(spy.events, "step start");
  EXPECT_LT(first - spy.events.begin(), first_step - spy.events.begin());
  EXPECT_EQ(count_of("step start"), 6 - step);
  EXPECT_EQ(parts_.task->validated, validated);
  EXPECT_EQ(weights_of(*parts_.model), weights);
  EXPECT_FALSE(manifest(step).state.validation_due);
  EXPECT_FALSE(manifest(step).metrics.empty()) << "what it has measured is saved with its step";
  expect_same(manifest(6), end);
}

INSTANTIATE_TEST_SUITE_P(, AtStep, ::testing::Values(2, 3, 6),
                         [](const auto& info) { return "step_" + std::to_string(info.param); });

TEST_F(InterruptedValidation, BeforeTheFirstStepItIsGivenUpToo) {
  const ValidationConfig validation{.at_end = false, .at_start = true};
  raise_within(0, 1, SIGINT);
  EXPECT_EQ(train(validation, at_end_alone()).step, 0);
  EXPECT_THAT(run_.checkpoints(), IsEmpty()) << "the next start begins anew";

  begin_again();
  train(validation, at_end_alone());
  EXPECT_EQ(count_of("validation end"), 1);
  EXPECT_TRUE(finished_);
}

TEST_F(InterruptedValidation, GivenUpTwiceItIsStillDue) {
  const ValidationConfig validation{.every_n_steps = 2};
  for (int start = 0; start < 2; ++start) {
    begin_again();
    raise_within(2, 1, SIGTERM);
    EXPECT_EQ(train(validation, at_end_alone()).step, 2);
    EXPECT_TRUE(manifest(2).state.validation_due);
  }
  begin_again();
  train(validation, at_end_alone());
  EXPECT_EQ(count_of("validation end"), 4);
}

TEST_F(InterruptedValidation, TheBestAreKeptByWhatTheResumedRunMeasures) {
  const ValidationConfig validation{.every_n_steps = 2};
  CheckpointConfig best = at_end_alone();
  best.keep_best = KeepBest{.metric = "loss", .k = 8};
  train(validation, best);
  const auto expected = run_.checkpoints();
  clear();
  begin_again();
  raise_within(4, 3, SIGTERM);
  train(validation, best);
  begin_again();
  train(validation, best);
  EXPECT_EQ(run_.checkpoints(), expected);
  EXPECT_FALSE(manifest(4).metrics.empty());
}

// The task says nothing of its metrics beforehand.
TEST_F(InterruptedValidation, AMetricThatItDoesNotGiveIsRefusedBeforeTheFirstStep) {
  CheckpointConfig best = at_end_alone();
  best.keep_best = KeepBest{.metric = "eval_loss"};
  try {
    train({.every_n_steps = 4}, best);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("gives no 'eval_loss'; it gives loss, twice"));
  }
  EXPECT_EQ(count_of("step start"), 0);
  EXPECT_TRUE(run_.checkpoints().empty());
}

class Saving : public InterruptedValidation, public ::testing::WithParamInterface<bool> {};

TEST_P(Saving, ARequestToSaveIsAnsweredWithinItAndItsValueStays) {
  const ValidationConfig validation{.every_n_steps = 4, .at_end = false};
  CheckpointConfig checkpoint = at_end_alone();
  checkpoint.save_every_n_steps = 4;
  train(validation, checkpoint);
  const auto validated = parts_.task->validated;
  const std::vector<double> weights = weights_of(*parts_.model);
  const NamedValues values = manifest(4).metrics;
  ASSERT_FALSE(values.empty());
  clear();

  begin_again();
  checkpoint = at_end_alone();
  checkpoint.async = GetParam();
  raise_within(4, 2, SIGUSR1);
  std::vector<size_t> saved_after;
  spy.at_save_request = [&](TrainerBase& trainer) {
    EXPECT_EQ(trainer.state().step, 4);
    saved_after.push_back(parts_.task->validated.size());
  };
  train(validation, checkpoint);
  EXPECT_THAT(saved_after, ElementsAre(1 + 2)) << "at once, not at its end";
  EXPECT_EQ(parts_.task->validated, validated);
  EXPECT_EQ(weights_of(*parts_.model), weights);
  ASSERT_THAT(run_.checkpoints(), ElementsAre("step-00000004", "step-00000008"));
  EXPECT_TRUE(manifest(4).state.validation_due) << "a resume from it validates again";

  // What was saved within it are training's random numbers: the rest is the same.
  std::filesystem::remove_all(run_.path() / "checkpoints/step-00000008");
  begin_again();
  train(validation, checkpoint, kTraining, /*seed=*/77);
  EXPECT_EQ(weights_of(*parts_.model), weights);
  EXPECT_EQ(manifest(4).metrics, values);
}

INSTANTIATE_TEST_SUITE_P(, Saving, ::testing::Bool(), [](const auto& info) {
  return info.param ? "in_the_background" : "at_once";
});

TEST_F(InterruptedValidation, AnEvaluationIsNotEndedByASignalOfATraining) {
  std::raise(SIGTERM);
  const auto trainer = make(Parts{}, {}, at_end_alone());
  EXPECT_FALSE(trainer->validate({}).has_value()) << "of a training";
  TrainerSetup setup = make_setup(Parts{}, kTraining, {.name = "tiny", .exp_dir = "nowhere"},
                                  {{"spy", {}, config::Node::map()}});
  setup.purpose = Purpose::evaluation;
  SpiedTrainer evaluating(std::move(setup));
  EXPECT_THAT(evaluating.evaluate([](const auto&) {}, {}), SizeIs(1));
}

}  // namespace
}  // namespace phalanx::tiny
