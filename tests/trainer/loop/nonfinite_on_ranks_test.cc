// SPDX-License-Identifier: Apache-2.0
// A loss or gradient of one rank that is not finite ends all ranks in that step, before the update.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBadStep = 3;

// What ends a run of two ranks, the second of which has `options`. Each rank must have met the
// error by itself: "" otherwise.
std::string error_of_both(const ParallelConfig& parallel, const TaskOptions& options) {
  const auto body = [&](World& world) {
    spy = {};
    Parts parts;
    if (!world.ranks().is_first()) parts.task = std::make_shared<Regression>(options);
    TrainerSetup setup =
        make_setup(parts, {.max_steps = 5, .batch_size = 2},
                   {.name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true},
                   {{"parallel", {}, config::write(parallel)}, {"spy", {}, config::Node::map()}});
    setup.ranks = world.ranks();
    setup.device = world.device();
    Trainer<ParallelMixin, Spy> trainer(std::move(setup));
    std::string message;
    try {
      trainer.train();
    } catch (const CommunicationError&) {
      throw;
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    require(trainer.state().step == kBadStep, "the run ends in that step");
    require(spy.results.size() == kBadStep - 1, "which does not end");
    const auto messages = world.ranks().all_gather(message);
    require(messages[0] == messages[1], "both say the same: " + messages[0] + "; " + messages[1]);
    throw std::runtime_error(message);
  };
  return in_ranks(2, body).message;
}

class NonfiniteOnRanks : public ::testing::TestWithParam<bool> {
 protected:
  static ParallelConfig parallel() { return {.use_fsdp = GetParam()}; }
};

TEST_P(NonfiniteOnRanks, ALossWhoseGradientIsFiniteEndsBothBeforeTheUpdate) {
  EXPECT_THAT(error_of_both(parallel(), {.infinite_at = kBadStep}),
              AllOf(HasSubstr("the loss is inf on rank 1"),
                    HasSubstr("the weights are as they were before this step")));
}

TEST_P(NonfiniteOnRanks, TheRankWhoseLossItIsIsNamed) {
  EXPECT_THAT(error_of_both(parallel(), {.not_a_number_at = kBadStep}),
              HasSubstr("the loss is nan on rank 1"));
}

INSTANTIATE_TEST_SUITE_P(Engines, NonfiniteOnRanks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "fsdp" : "ddp"; });

}  // namespace
}  // namespace phalanx::tiny
