// SPDX-License-Identifier: Apache-2.0
// Averages of buffers that training changes on each rank by itself.

#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/model.h"
#include "trainer/mixins/averages_mixin.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/mixins/validation_mixin.h"

namespace phalanx::tiny {
namespace {

/// Adds up in a buffer, which its predictions depend on, what each rank adds in training.
class Counting : public Model<Regressor> {
 public:
  explicit Counting(int64_t rank)
      : added_(0.01 * static_cast<double>(rank + 1)),
        weight_(register_parameter("weight", at::zeros({1, 3}))),
        bias_(register_parameter("bias", at::zeros({1}))),
        sum_(register_buffer("sum", at::zeros({1}))) {}

  at::Tensor predict(const at::Tensor& rows) override {
    if (is_training()) sum_.add_(added_);
    return at::linear(rows + sum_.clone(), weight_, bias_).flatten();
  }
  at::ScalarType dtype() const override { return weight_.scalar_type(); }
  bool in_training() const override { return is_training(); }

 private:
  double added_;
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor sum_;
};

using Averaging = Trainer<ParallelMixin, AveragesMixin, ValidationMixin, Spy>;

// What this rank holds of the model after a run that validates after each second step.
std::vector<at::Tensor> trained(const World& world, const ParallelConfig& parallel,
                                const AveragesConfig& averages) {
  spy = {};
  const Parts parts{.model = std::make_shared<Counting>(world.ranks().rank())};
  TrainerSetup setup =
      make_setup(parts, {.max_steps = 6, .batch_size = 2}, {.name = "tiny", .exp_dir = "nowhere"},
                 {{"parallel", {}, config::write(parallel)},
                  {"averages", {}, config::write(averages)},
                  {"validation", {}, config::write(ValidationConfig{.every_n_steps = 2})},
                  {"spy", {}, config::Node::map()}});
  setup.ranks = world.ranks();
  setup.device = world.device();
  Averaging trainer(std::move(setup));
  trainer.train();
  std::vector<at::Tensor> held;
  for (const ShardedTensorView& view : trainer.task_model().views()) {
    held.push_back(view.local.detach().clone());
  }
  return held;
}

class AveragesOnRanks : public ::testing::TestWithParam<bool> {};

TEST_P(AveragesOnRanks, ChangeNothingOfTheTrainingWhereTheyAreValidated) {
  const auto outcome = in_ranks(2, [](World& world) {
    const ParallelConfig parallel{.use_fsdp = GetParam(),
                                  .sharding_strategy = ShardingStrategy::full_shard};
    const auto plain = trained(world, parallel, {});
    const auto averaged =
        trained(world, parallel, {.method = Averages::swa, .buffers = true, .validate = true});
    require(plain.size() == averaged.size() && plain.size() == 3, "two parameters and a buffer");
    // The other ranks take rank 0's buffer before they use theirs again.
    const std::size_t compared = world.ranks().is_first() ? 3 : 2;
    for (std::size_t i = 0; i < compared; ++i) {
      require(plain[i].equal(averaged[i]), "tensor " + std::to_string(i) + " has the same bits");
    }
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(Engines, AveragesOnRanks, ::testing::Bool());

}  // namespace
}  // namespace phalanx::tiny
