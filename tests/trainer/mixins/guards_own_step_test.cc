// SPDX-License-Identifier: Apache-2.0
// Guards of a task that runs its own step: losses with a backward pass of their own, and updates by
// name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/loop/two_optimizers.h"
#include "trainer/mixins/guards_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kSteps = 10;
constexpr int64_t kBadStep = 8;
constexpr double kSpike = 1e8;

using Guarded = Trainer<GuardsMixin, Spy>;

// Losses of so few samples differ much.
GuardsConfig guards(std::optional<double> loss_factor, std::optional<double> norm_factor) {
  return {.on_spike = OnBadStep::skip,
          .loss_factor = loss_factor,
          .grad_norm_factor = norm_factor,
          .window = 5};
}

// Trains with these optimizers; an empty list means the usual one. Returns what was printed.
std::string train(const OwnStep::Run& run, const GuardsConfig& config,
                  std::vector<OptimizerPart> optimizers = {}) {
  spy = {};
  Parts parts;
  parts.task = std::make_shared<OwnStep>(run);
  parts.optimizer = std::make_shared<Descent>(0.01);
  TrainerSetup setup =
      make_setup(parts, {.max_steps = kSteps, .batch_size = 4},
                 {.name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true},
                 {{"guards", {}, config::write(config)}, {"spy", {}, config::Node::map()}});
  if (!optimizers.empty()) {
    setup.components.optimizer = nullptr;
    setup.optimizers = std::move(optimizers);
  }
  Guarded trainer(std::move(setup));
  ::testing::internal::CaptureStdout();
  trainer.train();
  return ::testing::internal::GetCapturedStdout();
}

// A pass of the step's micro-batch and its own backward pass; `bad`: with a spike in one step.
void pass(TrainingStep& step, bool bad, const std::vector<std::string>& into = {}) {
  const Batch& batch = *step.micro_batches().front();
  const double factor = bad && step.state().step == kBadStep ? kSpike : 1;
  step.backward(step.forward(batch).total(), {.weight = factor * step.weight_of(batch),
                                              .name = into.empty() ? "own" : into.front(),
                                              .into = into});
}

void require_skipped_for_its_loss() {
  ASSERT_THAT(spy.results, SizeIs(kSteps));
  for (const int64_t step : {kBadStep - 1, kBadStep, kBadStep + 1}) {
    EXPECT_EQ(spy.results[static_cast<size_t>(step - 1)].is_skipped, step == kBadStep) << step;
  }
  EXPECT_THAT(spy.results[kBadStep - 1].guarded_by, StartsWith("the loss, "));
}

TEST(GuardsOfAnOwnStep, SeeASpikeOfALossWithItsOwnBackwardPass) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    pass(step, /*bad=*/true);
    step.update();
  };
  train(run, guards(1e4, std::nullopt));
  require_skipped_for_its_loss();
}

TEST(GuardsOfAnOwnStep, SeeItInTheUpdateByNameOfTheOnlyOptimizer) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    pass(step, /*bad=*/true);
    step.update("only");
  };
  const auto descent = std::make_shared<Descent>(0.01);
  train(run, guards(1e4, std::nullopt),
        {{.rules = {.name = "only"},
          .optimizer = descent,
          .lr_scheduler = std::make_shared<Schedule>()}});
  require_skipped_for_its_loss();
  EXPECT_THAT(descent->rates, SizeIs(kSteps - 1));
}

// Whose losses stay near each other.
TwoOptimizers slow_ones() {
  return {.generator = std::make_shared<Descent>(0.01), .critic = std::make_shared<Descent>(0.01)};
}

// Passes and updates of two optimizers in turn; those named have a spike.
OwnStep::Run in_turn(std::vector<std::string> bad) {
  return [bad = std::move(bad)](OwnStep&, TrainingStep& step, Regressor&) {
    for (const std::string name : {"generator", "critic"}) {
      pass(step, std::ranges::find(bad, name) != bad.end(), {name});
      step.update(name);
    }
  };
}

TEST(GuardsOfAnOwnStep, NameTheUpdateThatIsLeftOut) {
  const TwoOptimizers two = slow_ones();
  const std::string printed =
      train(in_turn({"critic"}), guards(std::nullopt, 1e4), two.make_parts());
  ASSERT_THAT(spy.results, SizeIs(kSteps));
  EXPECT_FALSE(spy.results[kBadStep - 1].is_skipped) << "the generator has moved";
  EXPECT_THAT(printed, HasSubstr("warning: step 8 is skipped in part: update of critic: the "
                                 "gradient norm of critic, "));
  EXPECT_THAT(two.critic->rates, SizeIs(kSteps - 1));
  EXPECT_THAT(two.generator->rates, SizeIs(kSteps));
}

TEST(GuardsOfAnOwnStep, SkipAStepWhoseUpdatesAreAllLeftOut) {
  const TwoOptimizers two = slow_ones();
  const std::string printed =
      train(in_turn({"generator", "critic"}), guards(std::nullopt, 1e4), two.make_parts());
  ASSERT_THAT(spy.results, SizeIs(kSteps));
  EXPECT_TRUE(spy.results[kBadStep - 1].is_skipped);
  EXPECT_FALSE(spy.results[kBadStep].is_skipped);
  EXPECT_THAT(printed, HasSubstr("warning: step 8 is skipped, nothing has moved: update of "
                                 "generator: "));
  EXPECT_THAT(printed, HasSubstr("; update of critic: "));
}

TEST(GuardsOfAnOwnStep, CountStepsAndNotUpdates) {
  const TwoOptimizers two = slow_ones();
  GuardsConfig config = guards(std::nullopt, 1e4);
  config.max_skips = 1;
  train(in_turn({"generator", "critic"}), config, two.make_parts());
  ASSERT_THAT(spy.results, SizeIs(kSteps)) << "two updates of one step are left out";
}

TEST(GuardsOfAnOwnStep, SkipAStepThatTheTaskEndsWithASkipOfTheRest) {
  const TwoOptimizers two = slow_ones();
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    pass(step, /*bad=*/true, {"critic"});
    step.update("critic");
    step.skip();
  };
  train(run, guards(std::nullopt, 1e4), two.make_parts());
  ASSERT_THAT(spy.results, SizeIs(kSteps));
  EXPECT_TRUE(spy.results[kBadStep - 1].is_skipped) << "the guard has left the critic's out";
  EXPECT_FALSE(spy.results[kBadStep].is_skipped) << "the critic has moved";
}

}  // namespace
}  // namespace phalanx::tiny
