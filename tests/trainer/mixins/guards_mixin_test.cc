// SPDX-License-Identifier: Apache-2.0
// What a run does about a planted spike, a loss that is not a number, and one that explodes.

#include "trainer/mixins/guards_mixin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/planted.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/tensors/random.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

// The spy comes last: what it does on a restore follows what the checkpoint says.
using Guarded = Trainer<GuardsMixin, CheckpointMixin, Spy>;
using Factors = std::map<std::size_t, double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpike = 1e8;
constexpr int64_t kSteps = 16;
const GuardsConfig kOff;

// Losses of so few samples differ much.
GuardsConfig guards(OnBadStep on_bad_step, int64_t max_skips = 5) {
  return {.on_nonfinite = on_bad_step,
          .on_spike = on_bad_step,
          .loss_factor = 1e4,
          .grad_norm_factor = 1e4,
          .window = 5,
          .max_skips = max_skips};
}

/// What a run has come to.
struct Outcome {
  Parts parts;
  std::vector<double> losses;  ///< By step that has ended.
  std::vector<State> states;   ///< Likewise.
  std::vector<bool> skipped;   ///< Likewise.
  State undone;                ///< Where it has gone back to, with the place in the data.
};

class GuardedRun : public ::testing::Test {
 protected:
  void SetUp() override { StopSignal::install(); }

  // Trains to this step in a folder, with dropout; saved every five steps. The state, if there is
  // one, is where the run goes on.
  Outcome train(const std::string& folder, const GuardsConfig& config, const Factors& planted,
                int64_t steps = kSteps, const std::optional<State>& from = {}) {
    spy = {};
    seed_everything(7);
    std::filesystem::create_directories(run_.path() / folder);
    Outcome outcome;
    outcome.parts = {.task = std::make_shared<Planted>(planted),
                     .model = make_model(0.25),
                     .optimizer = std::make_shared<Descent>(0.01)};
    spy.at_step_undone = [&](TrainerBase& trainer) { outcome.undone = trainer.state(); };
    if (from) spy.at_restore = [&](TrainerBase& trainer) { trainer.restore(*from); };
    Guarded trainer(
        make_setup(outcome.parts, {.max_steps = steps, .batch_size = 4},
                   {.name = "tiny", .exp_dir = (run_.path() / folder).string()},
                   {{"guards", {}, config::write(config)},
                    {"checkpoint", {}, config::write(CheckpointConfig{.save_every_n_steps = 5})},
                    {"spy", {}, config::Node::map()}}));
    trainer.train();
    for (const StepResult& result : spy.results) {
      outcome.losses.push_back(result.losses().front().second);
      outcome.skipped.push_back(result.is_skipped);
    }
    outcome.states = spy.states;
    return outcome;
  }

  RunDir run_;
};

TEST_F(GuardedRun, SkipsASpikeWhichMovesNothing) {
  const Outcome plain = train("plain", kOff, {});
  const Outcome out = train("run", guards(OnBadStep::skip), {{8, kSpike}});
  ASSERT_THAT(out.losses, SizeIs(kSteps));
  EXPECT_THAT(out.parts.optimizer->rates, SizeIs(kSteps - 1));
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_EQ(out.skipped[i], i == 7) << i;
    EXPECT_EQ(out.states[i].samples, plain.states[i].samples) << "the step counts";
    if (i < 7) {
      EXPECT_EQ(out.losses[i], plain.losses[i]) << i;
    }
  }
  EXPECT_EQ(out.parts.task->trained, plain.parts.task->trained);
  EXPECT_THAT(spy.results[7].guarded_by, StartsWith("the loss, "));
  // The eighth gradient is the only one that the optimizer has not seen.
  EXPECT_NE(out.parts.optimizer->gradients[7], plain.parts.optimizer->gradients[7]);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(out.parts.optimizer->gradients[i], plain.parts.optimizer->gradients[i]) << i;
  }
}

TEST_F(GuardedRun, SkipsALossThatIsNotANumber) {
  const Outcome out = train("run", guards(OnBadStep::skip), {{3, kNan}, {9, kNan}});
  EXPECT_THAT(out.parts.optimizer->rates, SizeIs(kSteps - 2));
  EXPECT_TRUE(out.skipped[2] && out.skipped[8]);
  for (const double weight : weights_of(*out.parts.model)) EXPECT_TRUE(std::isfinite(weight));
}

/// Which micro-batch is planted; 9 is the last one of its epoch, and 10 the first of the next.
class Rollback : public GuardedRun, public ::testing::WithParamInterface<std::size_t> {};

// Losses, weights and random numbers are those of a run that is cut at the checkpoint, and goes on
// with the data behind the planted batch.
TEST_P(Rollback, GoesOnAsARunThatNeverMetTheBatches) {
  const auto planted = GetParam();
  const Outcome plain = train("plain", kOff, {}, 30);
  for (const double factor : {kSpike, kNan}) {
    const std::string name = factor == kSpike ? "spike" : "nan";
    const Outcome out = train(name, guards(OnBadStep::rollback), {{planted, factor}});
    EXPECT_EQ(out.undone.step, 5);
    EXPECT_EQ(out.undone.samples, plain.states[planted - 1].samples) << "they are left out";
    EXPECT_EQ(out.undone.epoch, plain.states[planted - 1].epoch);
    // Steps 1 to the one before the planted one, then 6 to 16.
    const size_t met = planted - 1;
    ASSERT_THAT(out.losses, SizeIs(met + kSteps - 5));
    EXPECT_EQ(out.states[met].step, 6);
    EXPECT_EQ(out.states.back().step, kSteps);
    const auto& order = plain.parts.task->trained;
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(out.parts.task->trained.size());
    EXPECT_EQ(out.parts.task->trained, decltype(out.parts.task->trained)(order.begin(), end))
        << "each batch comes once";

    const std::string other = name + "_without";
    train(other, kOff, {}, 5);
    const Outcome without = train(other, kOff, {}, kSteps, out.undone);
    EXPECT_THAT(std::vector<double>(out.losses.begin() + static_cast<std::ptrdiff_t>(met),
                                    out.losses.end()),
                ElementsAreArray(without.losses));
    EXPECT_EQ(weights_of(*out.parts.model), weights_of(*without.parts.model));
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, Rollback, ::testing::Values(7, 8, 9, 10));

TEST_F(GuardedRun, GoesOnAfterARollbackAndAResumeBitForBit) {
  const GuardsConfig config = guards(OnBadStep::rollback);
  const Outcome whole = train("whole", config, {{8, kSpike}});
  train("cut", config, {{8, kSpike}}, 13);
  const Outcome rest = train("cut", config, {}, kSteps);
  ASSERT_THAT(rest.losses, SizeIs(3));
  EXPECT_THAT(std::vector<double>(whole.losses.end() - 3, whole.losses.end()),
              ElementsAreArray(rest.losses));
  EXPECT_EQ(weights_of(*rest.parts.model), weights_of(*whole.parts.model));
}

TEST_F(GuardedRun, CountsSkipsThroughAResume) {
  const GuardsConfig config = guards(OnBadStep::skip, /*max_skips=*/1);
  train("run", config, {{3, kNan}}, 5);
  EXPECT_THAT(
      [&] {
        train("run", config, {{2, kNan}});
      },
      ThrowsMessage<std::runtime_error>(
          AllOf(HasSubstr("2 of the last 7 steps are bad, and guards.max_skips is 1"),
                HasSubstr("step 3: the loss is nan"), HasSubstr("step 7: the loss is nan"))));
}

TEST_F(GuardedRun, NeedsACheckpointToGoBackTo) {
  EXPECT_THAT(
      [&] {
        train("run", guards(OnBadStep::rollback), {{4, kNan}});
      },
      ThrowsMessage<std::runtime_error>(
          AllOf(StartsWith("the loss is nan. Guards would undo this step (rollback), but no "
                           "checkpoint is saved yet"),
                HasSubstr("checkpoint.save_every_n_steps"))));
}

TEST_F(GuardedRun, StopsAtASpikeBeforeItMovesTheWeights) {
  EXPECT_THAT(
      [&] {
        train("run", guards(OnBadStep::stop), {{8, kSpike}});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("has jumped")));
  EXPECT_THAT(spy.results, SizeIs(7));
}

TEST_F(GuardedRun, EndsWhereTheLossExplodes) {
  Factors growing;
  for (std::size_t batch = 6; batch <= kSteps; ++batch) growing[batch] = kSpike;
  for (const OnBadStep action : {OnBadStep::skip, OnBadStep::rollback}) {
    const std::string folder = action == OnBadStep::skip ? "skip" : "rollback";
    EXPECT_THAT(
        [&] { train(folder, guards(action, /*max_skips=*/3), growing); },
        ThrowsMessage<std::runtime_error>(AllOf(
            HasSubstr("4 of the last 9 steps are bad, and guards.max_skips is 3:\n  step 6: "),
            HasSubstr("has jumped"))));
  }
}

}  // namespace
}  // namespace phalanx::tiny
