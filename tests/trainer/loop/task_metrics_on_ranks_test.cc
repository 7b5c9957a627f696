// SPDX-License-Identifier: Apache-2.0
// The metrics that a task declares, in DDP and in FSDP: of all ranks, and the same on each.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "tests/trainer/loop/measuring.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"

namespace phalanx::tiny {
namespace {

class TaskMetricsOnRanks : public ::testing::TestWithParam<bool> {
 protected:
  static ParallelConfig parallel() { return {.use_fsdp = GetParam()}; }
};

// The data is the same on each rank; the last feeds no "seen".
TEST_P(TaskMetricsOnRanks, AreOfAllRanks) {
  const auto body = [&](World& world) {
    spy = {};
    std::vector<NamedValues> measured;
    spy.at_step_start = [](TrainerBase& trainer) { trainer.request_metrics(); };
    spy.at_step_end = [&](TrainerBase& trainer) { measured.push_back(trainer.step_metrics()); };
    const auto task = std::make_shared<Measuring>();
    const int64_t ranks = world.ranks().world_size();
    task->feeds = world.ranks().rank() < ranks - 1;
    TrainerSetup setup = make_setup(
        Parts{.task = task}, {.max_steps = 2, .batch_size = 3, .gradient_accumulation_steps = 2},
        {.name = "tiny", .exp_dir = "nowhere"},
        {{"parallel", {}, config::write(parallel())}, {"spy", {}, config::Node::map()}});
    setup.ranks = world.ranks();
    setup.device = world.device();
    Trainer<ParallelMixin, Spy> trainer(std::move(setup));
    trainer.train();
    const auto feeding = static_cast<double>(ranks - 1);
    require(measured == std::vector<NamedValues>{{{"seen", 6 * feeding}}, {{"seen", 4 * feeding}}},
            "those of the steps");
    const NamedValues values = trainer.validation_means(std::nullopt).value();
    require(value_of(values, "seen", -1) == 5 * feeding, "those of the validation");
    require(std::abs(value_of(values, "mean_number", -1) - 19.0 / 9) < 1e-12, "and their means");
  };
  for (const int64_t ranks : {2, 3}) EXPECT_EQ(in_ranks(ranks, body).message, "") << ranks;
}

INSTANTIATE_TEST_SUITE_P(Engines, TaskMetricsOnRanks, ::testing::Bool());

}  // namespace
}  // namespace phalanx::tiny
