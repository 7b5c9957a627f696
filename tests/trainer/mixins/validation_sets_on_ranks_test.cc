// SPDX-License-Identifier: Apache-2.0
// Named validation sets beside a model that is divided over ranks.

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <memory>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

/// Looks at the model's values, which ranks that divide it do not have.
class Looking : public Regression {
 public:
  using Config = NoFields;

  explicit Looking(NoFields = {}) {}

  bool takes_files() const override { return true; }
  void check(const Regressor& model) const override {
    for (const at::Tensor& parameter : dynamic_cast<const torch::nn::Module&>(model).parameters()) {
      if (parameter.sum().item<double>() != 0) throw UserError("weights do not start at 0");
    }
  }
};

REGISTER_TASK("tiny", Looking);

TEST(ValidationSets, CheckTheModelBeforeItIsDivided) {
  const auto outcome = in_ranks(2, [](World& world) {
    spy = {};
    const ParallelConfig parallel{.use_fsdp = true,
                                  .sharding_strategy = ShardingStrategy::full_shard};
    const ValidationConfig validation{.sets = {{"more", {"rows.txt"}}}};
    TrainerSetup setup =
        make_setup({.task = std::make_shared<Looking>()}, {.max_steps = 1, .batch_size = 2},
                   {.name = "tiny", .exp_dir = "nowhere"},
                   {{"parallel", {}, config::write(parallel)},
                    {"validation", {}, config::write(validation)},
                    {"spy", {}, config::Node::map()}});
    setup.ranks = world.ranks();
    setup.device = world.device();
    Trainer<ParallelMixin, ValidationMixin, Spy> trainer(std::move(setup));
    trainer.train();
    require(trainer.validation_sets().size() == 1, "the set is there");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx::tiny
