// SPDX-License-Identifier: Apache-2.0
// A task whose loss, hooks and validation use the other ranks.

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/ranks/collectives/differentiable.h"

namespace phalanx::tiny {
namespace {

/// Asks rank k for the prediction k + 1 of the row (1, k, 2), on every rank: each prediction has a
/// gradient from all of them.
class Together : public Regression {
 public:
  using Regression::Regression;

  Loss compute_loss(Regressor& model, const Samples&, const State& state) override {
    const auto rank = static_cast<double>(ranks().rank());
    const at::Tensor mine = model.predict(at::tensor({1.0, rank, 2.0}).view({1, 3}));
    const at::Tensor all = differentiable::all_gather(ranks(), mine);
    const at::Tensor targets = tensors::arange(ranks().world_size(), at::kDouble).add(1);
    (state.phase == Phase::train ? losses : validated_losses)
        .push_back(all.sub(targets).square().sum().item<double>());
    return all.sub(targets).square().sum();
  }
  void on_step_end(Regressor&, const State& state) override {
    const at::Tensor steps = at::tensor({static_cast<double>(state.step)});
    ranks().all_reduce(steps);
    steps_of_all.push_back(steps.item<double>());
  }

  std::vector<double> losses;
  std::vector<double> validated_losses;
  std::vector<double> steps_of_all;
};

// Trains one step on these ranks.
std::pair<std::shared_ptr<Together>, std::vector<double>> train(const Ranks& ranks,
                                                                at::Device device) {
  spy = {};
  Parts parts;
  const auto task = std::make_shared<Together>();
  parts.task = task;
  TrainerSetup setup = make_setup(
      parts, {.max_steps = 1, .batch_size = 2},
      {.name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true},
      {{"parallel", {}, config::write(ParallelConfig())}, {"spy", {}, config::Node::map()}});
  setup.ranks = ranks;
  setup.device = device;
  Trainer<ParallelMixin, Spy> trainer(std::move(setup));
  trainer.train();
  return {task, parts.optimizer->gradients.front()};
}

// All weights begin at 0, so that rank k's prediction is k + 1 too small.
TEST(LossOverRanks, HasTheGradientOfAllPredictions) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto [task, gradient] = train(world.ranks(), world.device());
    // The ranks' tokens weigh their losses, whose weights have the mean 1.
    require(at::tensor(gradient).allclose(at::tensor({-6.0, -4.0, -12.0, -6.0}), 1e-12),
            "the gradient");
    require(task->losses == std::vector<double>{5}, "the loss");
    require(task->steps_of_all == std::vector<double>{2}, "a hook that adds");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(LossOverRanks, IsItsOwnInAWorldOfOne) {
  const auto [task, gradient] = train(Ranks(), at::kCPU);
  EXPECT_EQ(gradient, (std::vector<double>{-2, 0, -4, -2}));
  EXPECT_EQ(task->losses, std::vector<double>{1});
  EXPECT_EQ(task->steps_of_all, std::vector<double>{1});
}

}  // namespace
}  // namespace phalanx::tiny
