// SPDX-License-Identifier: Apache-2.0
// Passes of a task's own step (TrainingStep::run) that fail name what the usual step names: the
// operation, the module, the micro-batch and its data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/own_flowers.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::flowers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const TrainingConfig kOneBatch{.max_steps = 1, .batch_size = 4};
const TrainingConfig kTwoBatches{.max_steps = 1, .batch_size = 2, .gradient_accumulation_steps = 2};

// The error of a training; `users_mistake`: whether it has to be one.
std::string error_of(const Parts& run, const TrainingConfig& training, bool users_mistake = false) {
  tiny::spy = {};
  try {
    tiny::SpiedTrainer(setup_of(run, training)).train();
  } catch (const std::exception& error) {
    EXPECT_EQ(dynamic_cast<const UserError*>(&error) != nullptr, users_mistake);
    return error_text(error);
  }
  return "none";
}

// Those whose third, in line 4, has a label that is none.
std::vector<Flower> with_a_bad_label() {
  std::vector<Flower> flowers = eight_flowers();
  flowers[2].kind = 3;
  return flowers;
}

TEST(FailingOwnStep, NamesOperationModuleAndLine) {
  EXPECT_THAT(
      error_of(own_run_of(with_a_bad_label()), kOneBatch, /*users_mistake=*/true),
      AllOf(HasSubstr("Target 3 is out of bounds"),
            HasSubstr("'flowers.csv', line 4: kinds is 3, but cross_entropy_loss takes 0 to 2"),
            HasSubstr("\n  step 1, forward, cross_entropy_loss(float32 [4, 3], kinds int64 [4]), "
                      "behind the module head (Linear)\n  a micro-batch of 4 samples"),
            HasSubstr("'flowers.csv', line 2: is the first of its samples")));
}

TEST(FailingOwnStep, FindsTheMicroBatchOfThePass) {
  EXPECT_THAT(
      error_of(own_run_of(with_a_bad_label()), kTwoBatches, /*users_mistake=*/true),
      AllOf(HasSubstr("'flowers.csv', line 4: kinds is 3, but cross_entropy_loss takes 0 to 2"),
            HasSubstr("a micro-batch of 2 samples"),
            HasSubstr("'flowers.csv', line 4: is the first of its samples"),
            Not(HasSubstr("line 2"))));
}

/// A pass over all micro-batches, which fails once, behind the first of them.
class FailsOnce : public Classification {
 public:
  FailsOnce() : Classification(file_of(eight_flowers(), {}), file_of(eight_flowers(), {}), {}) {}

  void training_step(TrainingStep& step, Classifier& model) override {
    step.run([&] {
      std::vector<at::Tensor> of_batches;
      for (const auto& batch : step.micro_batches()) {
        of_batches.push_back(usual_loss(*this, model, static_cast<const FlowerBatch&>(*batch)));
        if (losses == 1) throw std::runtime_error("not now");
      }
      return of_batches;
    });
    step.skip();
  }
};

TEST(FailingOwnStep, NamesNoMicroBatchOfAPassThatDoesNotFailAgain) {
  EXPECT_THAT(
      error_of({.task = std::make_shared<FailsOnce>(), .model = network({})}, kTwoBatches),
      HasSubstr("not now\n  step 1, forward\n  one of 2 micro-batches:\n    'flowers.csv', line 2: "
                "is the first sample of micro-batch 1\n    'flowers.csv', line 4: is the first "
                "sample of micro-batch 2"));
}

TEST(FailingOwnStep, NamesTheModuleWhoseCodeFails) {
  EXPECT_THAT(
      error_of(own_run_of(eight_flowers(), {.block_throws = true}), kTwoBatches),
      AllOf(HasSubstr("the block cannot do this\n  step 1, forward, the module block (Block)\n"),
            HasSubstr("sizes: float32 [2, 4]"),
            HasSubstr("'flowers.csv', line 2: is the first of its samples")));
}

TEST(FailingOwnStep, LooksIntoAPassThatTakesGradientsItself) {
  const auto with_penalty = [](Classification& task, Classifier& model, const FlowerBatch& batch) {
    const at::Tensor sizes = batch.sizes.clone().requires_grad_(true);
    const at::Tensor penalty = torch::autograd::grad({sizes.square().sum()}, {sizes}).front().sum();
    return usual_loss(task, model, batch).add(penalty);
  };
  EXPECT_THAT(error_of(own_run_of(with_a_bad_label(), {}, with_penalty), kOneBatch,
                       /*users_mistake=*/true),
              HasSubstr("line 4: kinds is 3, but cross_entropy_loss takes 0 to 2"));
}

TEST(FailingOwnStep, SaysOfWhichSamplesABackwardPassIs) {
  const Faults faults{.changes_what_is_saved = true};
  EXPECT_THAT(error_of(own_run_of(eight_flowers(), faults), kOneBatch),
              AllOf(HasSubstr("modified by an inplace operation"),
                    HasSubstr("\n  step 1, backward\n  a micro-batch of 4 samples"),
                    HasSubstr("sizes: float32 [4, 4]")));
  EXPECT_THAT(
      error_of(own_run_of(eight_flowers(), faults), kTwoBatches),
      HasSubstr(
          "\n  step 1, backward\n  one of 2 micro-batches:\n    'flowers.csv', line 2: is the "
          "first sample of micro-batch 1\n    'flowers.csv', line 4: is the first sample of "
          "micro-batch 2"));
}

TEST(FailingOwnStep, NamesTheOperationThatMakesNan) {
  // The task's loss, which the pass does not use, is finite.
  const auto logarithm = [](Classification&, Classifier& model, const FlowerBatch& batch) {
    return model.scores(batch).abs().neg().log().mean();
  };
  EXPECT_THAT(error_of(own_run_of(eight_flowers(), {}, logarithm), kTwoBatches),
              HasSubstr("the loss is nan; the first value that is not finite is of log(float32 "
                        "[2, 3]), behind the module head (Linear); samples 0, 1, 2, 3; the weights "
                        "are as they were before this step"));
}

TEST(FailingOwnStep, NamesTheOperationBehindGradientsOfThePass) {
  const auto logarithm = [](Classification&, Classifier& model, const FlowerBatch& batch) {
    const at::Tensor sizes = batch.sizes.clone().requires_grad_(true);
    const at::Tensor slope = torch::autograd::grad({sizes.square().sum()}, {sizes}).front();
    return model.scores(batch).abs().neg().log().mean().add(slope.sum());
  };
  EXPECT_THAT(error_of(own_run_of(eight_flowers(), {}, logarithm), kOneBatch),
              HasSubstr("the first value that is not finite is of log(float32 [4, 3])"));
}

TEST(FailingOwnStep, SaysOfWhichSamplesAnAnomalyIs) {
  const auto root = [](Classification&, Classifier& model, const FlowerBatch& batch) {
    return model.scores(batch).mul(0).sqrt().sum();
  };
  const torch::autograd::DetectAnomalyGuard detect;
  EXPECT_THAT(error_of(own_run_of(eight_flowers(), {}, root), kOneBatch),
              AllOf(HasSubstr("returned nan values in its 0th output"),
                    HasSubstr("\n  step 1, backward\n  a micro-batch of 4 samples"),
                    HasSubstr("'flowers.csv', line 2: is the first of its samples")));
}

TEST(FailingOwnStep, NamesTheSampleThatHoldsNan) {
  std::vector<Flower> flowers = eight_flowers();
  flowers[2].sizes[1] = kNan;
  EXPECT_THAT(error_of(own_run_of(flowers), kTwoBatches, /*users_mistake=*/true),
              HasSubstr("the loss is nan: 'flowers.csv', line 4: sizes[1] is nan. Repair"));
}

TEST(FailingOwnStep, IsComputedOnceWhileAllIsWell) {
  const Parts run = own_run_of(eight_flowers());
  EXPECT_EQ(error_of(run, kTwoBatches), "none");
  EXPECT_EQ(run.task->losses, 2);
  EXPECT_EQ(passes_of(*run.model), 2);
}

}  // namespace
}  // namespace phalanx::flowers
