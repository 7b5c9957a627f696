// SPDX-License-Identifier: Apache-2.0
// Steps of a task that moves two optimizers in its own order, on two ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/loop/step_on_ranks.h"
#include "tests/trainer/loop/two_optimizers.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::HasSubstr;

// The elements that this rank holds of a parameter, and which they are.
void require_close(const NamedParameter& held, const std::vector<double>& expected, size_t first) {
  const at::Tensor flat = held.tensor.detach().flatten();
  const int64_t begin = held.shard ? held.shard->begin : 0;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double difference =
        flat[i].item<double>() - expected[first + static_cast<size_t>(begin + i)];
    require(std::abs(difference) < 1e-12, held.name + " is that of the loop by hand");
  }
}

void train(World& world, const ParallelConfig& parallel, const OwnStep::Run& run) {
  Parts parts;
  parts.task = std::make_shared<OwnStep>(run, samples_of(world));
  TrainerSetup setup = setup_on(world, parallel, parts);
  setup.components.optimizer = nullptr;
  setup.optimizers = TwoOptimizers().make_parts();
  Trainer<ParallelMixin, Spy> trainer(std::move(setup));
  trainer.train();
  const std::vector<double> expected = gan_by_hand({.samples = {10, 9}});
  require_close(trainer.optimizers()[0].parameters.front(), expected, 0);
  require_close(trainer.optimizers()[1].parameters.front(), expected, 3);
}

std::string errors_of_both(const ParallelConfig& parallel, const OwnStep::Run& run) {
  return tiny::errors_of_both([&](World& world) { train(world, parallel, run); });
}

class TwoOptimizersOnRanks : public ::testing::TestWithParam<bool> {
 protected:
  static ParallelConfig parallel() { return {.use_fsdp = GetParam()}; }
};

TEST_P(TwoOptimizersOnRanks, MoveAsALoopByHandOverTheSamplesOfAll) {
  const auto outcome = in_ranks(2, [](World& world) { train(world, parallel(), gan_step); });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST_P(TwoOptimizersOnRanks, ARankThatMovesAnotherOneEndsBoth) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    for (const auto& batch : step.micro_batches()) step.backward(step.forward(*batch), *batch);
    step.update(step.ranks().is_first() ? "critic" : "generator");
  };
  EXPECT_THAT(errors_of_both(parallel(), run),
              HasSubstr("in step 1 rank 0 updates 'critic' and rank 1 updates 'generator'"));
}

TEST_P(TwoOptimizersOnRanks, ARankThatMovesOneAloneEndsBoth) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    gan_step(task, step, model);
    if (step.ranks().is_first()) step.update("critic");
  };
  EXPECT_THAT(errors_of_both(parallel(), run),
              HasSubstr("in step 1 rank 0 updates 'critic' and rank 1 ends the step"));
}

TEST_P(TwoOptimizersOnRanks, RefuseGradientsForSomeOfAPassThatDoesNotReduceThem) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    const auto& batch = static_cast<const Samples&>(*step.micro_batches().front());
    const auto loss = [&] {
      return std::vector{task.compute_loss(model, batch, step.state()).total()};
    };
    step.backward(step.run(loss, /*synchronize=*/false).front(), {.into = {"critic"}});
  };
  EXPECT_THAT(errors_of_both(parallel(), run), HasSubstr("BackwardOptions::into"));
}

INSTANTIATE_TEST_SUITE_P(Engines, TwoOptimizersOnRanks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "fsdp" : "ddp"; });

TEST(TwoOptimizersInDdp, MoveAlikeWhereGradientsAreViewsOfBuckets) {
  const auto outcome = in_ranks(
      2, [](World& world) { train(world, {.ddp = {.gradient_as_bucket_view = true}}, gan_step); });
  EXPECT_EQ(outcome, RankOutcome{});
}

}  // namespace
}  // namespace phalanx::tiny
