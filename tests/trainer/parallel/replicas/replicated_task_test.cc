// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/replicated_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/flowers.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/api/modules.h"
#include "trainer/api/training_step.h"
#include "trainer/base/user_error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader.h"

namespace phalanx::flowers {
namespace {

using ::testing::HasSubstr;

const TrainingConfig kSixSteps{.max_steps = 6, .batch_size = 3, .gradient_accumulation_steps = 2};

/// As Classification, without what it counts: losses are computed by several threads at a time.
class Kinds : public Task<FlowerBatch, Classifier> {
 public:
  explicit Kinds(bool has_own_step = false) : has_own_step_(has_own_step) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    return load(file_of(eight_flowers(), {}), {.shuffle = false, .num_workers = 0}, request,
                phase == Phase::train);
  }
  Loss compute_loss(Classifier& model, const FlowerBatch& batch, const State&) override {
    return torch::cross_entropy_loss(model.scores(batch), batch.kinds);
  }
  void training_step(TrainingStep& step, Classifier&) override {
    if (!has_own_step_) return step.run_as_usual();
    for (const auto& batch : step.micro_batches()) step.backward(step.forward(*batch), *batch);
    step.update();
  }

 private:
  bool has_own_step_;
};

/// The flowers, of which those of kind 0 have no token: they are in no loss.
class CountedFlowers : public Dataset {
 public:
  int64_t size() const override { return all_->size(); }
  std::string fingerprint() const override { return "counted"; }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    all_->fail(index, kind, problem);
  }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    std::unique_ptr<Batch> batch = all_->batch(indices);
    batch->tokens = dynamic_cast<FlowerBatch&>(*batch).kinds.ne(0).sum().item<int64_t>();
    return batch;
  }

 private:
  std::shared_ptr<Dataset> all_ = file_of(eight_flowers(), {});
};

/// Its loss is NaN for samples of kind 0 alone.
class CountedKinds : public Kinds {
 public:
  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    return load(std::make_shared<CountedFlowers>(), {.shuffle = false, .num_workers = 0}, request,
                phase == Phase::train);
  }
  Loss compute_loss(Classifier& model, const FlowerBatch& batch, const State&) override {
    return torch::cross_entropy_loss(model.scores(batch), batch.kinds, /*weight=*/{},
                                     at::Reduction::Mean, /*ignore_index=*/0);
  }
};

struct Outcome {
  std::vector<double> losses;
  at::Tensor weights;
  int64_t passes = 0;
};

/// The results of a run on one device (0 replicas) or on replicas, the last of which has these
/// faults.
Outcome train(size_t replicas, std::shared_ptr<AnyTask> task = std::make_shared<Kinds>(),
              const Faults& of_last = {}) {
  tiny::spy = {};
  torch::manual_seed(7);
  const std::shared_ptr<ModelBase> model = network({});
  if (replicas > 0) {
    ReplicatedModel replicated_model{.original = model};
    for (size_t i = 0; i < replicas; ++i) {
      replicated_model.replicas.push_back(network(i + 1 == replicas ? of_last : Faults{}));
      replicated_model.devices.emplace_back(at::kCPU);
    }
    task = replicated(std::move(task), std::move(replicated_model), "kinds");
  }
  TrainerSetup setup = setup_of({}, kSixSteps);
  setup.components.task = task;
  setup.components.model = model;
  tiny::SpiedTrainer(std::move(setup)).train();
  Outcome outcome;
  for (const StepResult& result : tiny::spy.results) {
    outcome.losses.push_back(result.losses().front().second);
  }
  std::vector<at::Tensor> weights;
  for (const at::Tensor& parameter : modules::parameters(model->module())) {
    weights.push_back(parameter.detach().flatten().to(torch::kDouble));
  }
  outcome.weights = torch::cat(weights);
  outcome.passes = passes_of(*model);
  return outcome;
}

// Eight samples in micro-batches of 3, 3 and 2, in parts of 2 and 1, or 1 and 1.
TEST(ReplicatedTask, TrainsAsOneDevice) {
  const Outcome one = train(0);
  ASSERT_EQ(one.losses.size(), 6);
  for (const size_t replicas : {1, 2, 3, 5}) {
    SCOPED_TRACE(replicas);
    const Outcome several = train(replicas);
    ASSERT_EQ(several.losses.size(), 6);
    for (size_t step = 0; step < 6; ++step) {
      EXPECT_NEAR(several.losses[step], one.losses[step], 1e-5);
    }
    EXPECT_TRUE(torch::allclose(several.weights, one.weights, 1e-4, 1e-5));
    EXPECT_EQ(several.passes, one.passes) << "buffers are those of replica 0";
  }
}

// Parts of 2 and 1 samples have 1 token each, and parts of 1 sample may have none.
TEST(ReplicatedTask, WeighsPartsByTheirTokens) {
  const Outcome one = train(0, std::make_shared<CountedKinds>());
  ASSERT_EQ(one.losses.size(), 6);
  for (const size_t replicas : {2, 3}) {
    SCOPED_TRACE(replicas);
    const Outcome several = train(replicas, std::make_shared<CountedKinds>());
    ASSERT_EQ(several.losses.size(), 6);
    for (size_t step = 0; step < 6; ++step) {
      EXPECT_NEAR(several.losses[step], one.losses[step], 1e-5);
    }
    EXPECT_TRUE(torch::allclose(several.weights, one.weights, 1e-4, 1e-5));
  }
}

/// Notes which GPU its batches were last to go to.
class AskedKinds : public Kinds {
 public:
  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    gpu = request.gpu;
    return Kinds::build_data(phase, request);
  }
  std::optional<at::Device> gpu;
};

// Parts are read anew, and go to their replicas' devices: the whole would be pinned for nothing.
TEST(ReplicatedTask, LeavesWholeMicroBatchesOutOfPinnedMemory) {
  const auto asked = std::make_shared<AskedKinds>();
  const auto task = replicated(asked,
                               {.original = network({}),
                                .replicas = {network({}), network({})},
                                .devices = {at::kCPU, at::kCPU}},
                               "kinds");
  const BatchRequest request{.batch_size = 3, .gpu = at::Device(at::kCUDA, 0)};
  EXPECT_NE(task->build_data(Phase::train, request), nullptr);
  EXPECT_FALSE(asked->gpu);
  EXPECT_NE(task->build_data(Phase::validate, request), nullptr);
  EXPECT_EQ(asked->gpu, request.gpu);
}

TEST(ReplicatedTask, RefusesAStepOfItsOwnThatReadsItsMicroBatches) {
  try {
    train(2, std::make_shared<Kinds>(/*has_own_step=*/true));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("task 'kinds' runs its steps by itself"));
  }
}

TEST(ReplicatedTask, AnErrorNamesItsReplica) {
  try {
    train(2, std::make_shared<Kinds>(), {.block_throws = true});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("replica 1 of 2 (cpu): the block cannot do this"));
    EXPECT_THAT(error.what(), HasSubstr("part 1: kinds: int64 [1], from 2 to 2"));
  }
}

}  // namespace
}  // namespace phalanx::flowers
