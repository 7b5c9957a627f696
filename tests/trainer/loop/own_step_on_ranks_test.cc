// SPDX-License-Identifier: Apache-2.0
// A task that runs its own training step on two ranks.

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/loop/own_step.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/loop/step_on_ranks.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::HasSubstr;

/// What there is to compare of a rank's run: the gradients of what it holds, by step.
struct Outcome {
  std::vector<std::vector<double>> gradients;
  std::vector<NamedValues> losses;
};

Outcome train(World& world, const ParallelConfig& parallel, const OwnStep::Run& run) {
  Parts parts;
  if (run) {
    parts.task = std::make_shared<OwnStep>(run, samples_of(world));
  } else {
    parts.task = std::make_shared<Regression>(samples_of(world));
  }
  Trainer<ParallelMixin, Spy> trainer(setup_on(world, parallel, parts));
  trainer.train();
  Outcome outcome{.gradients = parts.optimizer->gradients, .losses = {}};
  for (const StepResult& result : spy.results) outcome.losses.push_back(result.losses());
  return outcome;
}

void require_usual(World& world, const ParallelConfig& parallel, const OwnStep::Run& run) {
  const Outcome usual = train(world, parallel, {});
  const Outcome own = train(world, parallel, run);
  require(usual.gradients.size() == 2, "two steps");
  require(own.gradients == usual.gradients, "the same gradients");
  require(own.losses == usual.losses, "the same losses");
}

std::string errors_of_both(const ParallelConfig& parallel, const OwnStep::Run& run) {
  return tiny::errors_of_both([&](World& world) { train(world, parallel, run); });
}

class OwnStepOnRanks : public ::testing::TestWithParam<bool> {
 protected:
  static ParallelConfig parallel() { return {.use_fsdp = GetParam()}; }
};

TEST_P(OwnStepOnRanks, WrittenOutIsTheUsualOneToTheBit) {
  const auto outcome =
      in_ranks(2, [](World& world) { require_usual(world, parallel(), usual_step); });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST_P(OwnStepOnRanks, RunsPassesOfItsOwn) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Outcome usual = train(world, parallel(), {});
    require(train(world, parallel(), own_passes).gradients == usual.gradients,
            "the same gradients");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST_P(OwnStepOnRanks, ARankThatSkipsAloneEndsBoth) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    for (const auto& batch : step.micro_batches()) step.backward(step.forward(*batch), *batch);
    if (step.ranks().is_first()) return step.update();
    step.skip();
  };
  const std::string expected = "in step 1 1 of 2 ranks update and the others skip";
  const std::string errors = errors_of_both(parallel(), run);
  EXPECT_EQ(errors.find(expected), 0u) << errors;
  EXPECT_NE(errors.rfind(expected), 0u) << errors;
}

// Both ranks say so, at once, and neither waits for the other in another operation.
void expect_both_say(const std::string& errors, const std::string& expected) {
  EXPECT_EQ(errors.find(expected), 0u) << errors;
  EXPECT_NE(errors.rfind(expected), 0u) << errors;
  EXPECT_THAT(errors, HasSubstr("all ranks run the same passes of a training_step"));
}

TEST_P(OwnStepOnRanks, ARankThatSkipsAloneBeforeItsFirstPassEndsBoth) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.state().step == 2 && step.ranks().is_first()) return step.skip();
    usual_step(task, step, model);
  };
  expect_both_say(errors_of_both(parallel(), run),
                  "in step 2 rank 0 skips and rank 1 begins a forward pass that does not "
                  "synchronize: ");
}

TEST_P(OwnStepOnRanks, ARankThatSkipsAloneAfterItsForwardPassEndsBoth) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    for (const auto& batch : step.micro_batches()) {
      const Loss loss = step.forward(*batch);
      if (!step.ranks().is_first()) return step.skip();
      step.backward(loss, *batch);
    }
    step.update();
  };
  expect_both_say(errors_of_both(parallel(), run),
                  "in step 1 rank 0 begins a backward pass and rank 1 skips: ");
}

TEST_P(OwnStepOnRanks, ARankThatRunsMorePassesEndsBoth) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.state().step == 1) return usual_step(task, step, model);
    for (const auto& batch : step.micro_batches()) step.backward(step.forward(*batch), *batch);
    if (!step.ranks().is_first()) {
      const auto& last = *step.micro_batches().back();
      step.backward(step.forward(last), last);
    }
    step.update();
  };
  expect_both_say(errors_of_both(parallel(), run),
                  "in step 2 rank 0 updates and rank 1 begins a forward pass: ");
}

TEST_P(OwnStepOnRanks, ARankThatRunsAPassWithoutGradientsAloneEndsBoth) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.ranks().is_first()) {
      const at::NoGradGuard no_grad;
      (void)step.forward(*step.micro_batches().front());
    }
    usual_step(task, step, model);
  };
  expect_both_say(errors_of_both(parallel(), run),
                  "in step 1 rank 0 begins a forward pass without gradients and rank 1 begins a "
                  "forward pass that does not synchronize: ");
}

TEST_P(OwnStepOnRanks, RanksThatLogOtherNamesAreTold) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    for (const auto& batch : step.micro_batches()) step.backward(step.forward(*batch), *batch);
    step.log(step.ranks().is_first() ? "one" : "other", tensors::full({}, 1.0));
    step.update();
  };
  EXPECT_THAT(errors_of_both(parallel(), run),
              HasSubstr("in step 1 rank 0 logs 'loss, one' and rank 1 'loss, other'"));
}

TEST_P(OwnStepOnRanks, GradientsThatNobodyReducedMoveNothing) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    const auto& batch = *step.micro_batches().front();
    step.backward(step.forward(batch), batch);
    step.update();
  };
  EXPECT_THAT(errors_of_both(parallel(), run), HasSubstr("the gradients are this rank's alone"));
}

TEST_P(OwnStepOnRanks, ASkipLeavesNoGradientsBehind) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    const auto& batch = *step.micro_batches().front();
    step.backward(step.forward(batch), batch);
    step.skip();
  };
  EXPECT_THAT(errors_of_both(parallel(), run),
              HasSubstr("the skipped gradients are this rank's alone"));
}

TEST_P(OwnStepOnRanks, ASkippedStepIsAsIfItHadComputedNothing) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto first_skips = [](bool computes) {
      return [computes](OwnStep& task, TrainingStep& step, Regressor& model) {
        if (step.state().step == 2) return usual_step(task, step, model);
        if (computes) {
          for (const auto& batch : step.micro_batches()) {
            step.backward(step.forward(*batch), *batch);
          }
        }
        step.skip();
      };
    };
    const auto gradients = train(world, parallel(), first_skips(true)).gradients;
    require(gradients.size() == 1, "one update");
    require(gradients == train(world, parallel(), first_skips(false)).gradients,
            "the same gradients");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST_P(OwnStepOnRanks, RunsTwoForwardPassesBeforeABackwardPass) {
  const auto outcome =
      in_ranks(2, [](World& world) { require_usual(world, parallel(), two_forwards); });
  EXPECT_EQ(outcome, RankOutcome{});
}

// Between passes that leave gradients to later ones, too: it does not have these reduced.
TEST_P(OwnStepOnRanks, RunsPassesWithoutGradientsBetween) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    for (const auto& batch : step.micro_batches()) {
      const Loss loss = step.forward(*batch);
      {
        const at::NoGradGuard no_grad;
        step.run([&] {
          const auto& samples = static_cast<const Samples&>(*batch);
          return std::vector{task.compute_loss(model, samples, step.state()).total()};
        });
      }
      step.backward(loss, *batch);
    }
    step.update();
  };
  const auto outcome = in_ranks(2, [&](World& world) { require_usual(world, parallel(), run); });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST_P(OwnStepOnRanks, RunsTwoBackwardPassesOfAForwardPass) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Outcome usual = train(world, parallel(), {});
    const Outcome twice = train(world, parallel(), two_backwards);
    require(twice.gradients.size() == 2, "two steps");
    for (size_t step = 0; step < 2; ++step) {
      for (size_t i = 0; i < usual.gradients[step].size(); ++i) {
        const double expected = usual.gradients[step][i];
        require(std::abs(twice.gradients[step][i] - expected) <= 1e-12 * (1 + std::abs(expected)),
                "the same gradients");
      }
    }
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST_P(OwnStepOnRanks, ALossOfNoForwardPassIsRefused) {
  const auto run = [](OwnStep&, TrainingStep& step, Regressor&) {
    const at::Tensor apart = tensors::full({}, 1.0).requires_grad_();
    step.run([] { return std::vector<at::Tensor>(); });
    step.backward(apart.mul(2));
  };
  EXPECT_THAT(errors_of_both(parallel(), run), HasSubstr("a loss that comes from no forward pass"));
}

TEST_P(OwnStepOnRanks, ARankThatTakesAnotherBranchEndsBoth) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.state().step == 2 && !step.ranks().is_first()) return two_forwards(task, step, model);
    usual_step(task, step, model);
  };
  expect_both_say(errors_of_both(parallel(), run),
                  "in step 2 rank 0 begins a backward pass and rank 1 begins a forward pass that "
                  "does not synchronize: ");
}

TEST(OwnStepOnThreeRanks, CountsThoseThatDoAsTheFirst) {
  const auto run = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.ranks().rank() == 1) return step.skip();
    usual_step(task, step, model);
  };
  const auto outcome = in_ranks(3, [&](World& world) { train(world, {}, run); });
  EXPECT_THAT(outcome.message,
              HasSubstr("rank 1 skips (2 of 3 ranks do as rank 0): all ranks run the same passes"));
}

INSTANTIATE_TEST_SUITE_P(Engines, OwnStepOnRanks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "fsdp" : "ddp"; });

}  // namespace
}  // namespace phalanx::tiny
