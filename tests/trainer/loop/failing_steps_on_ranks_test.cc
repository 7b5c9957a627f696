// SPDX-License-Identifier: Apache-2.0
// A step that fails on one of two ranks names its input there, and leaves no rank waiting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/loop/flowers.h"
#include "tests/trainer/loop/own_flowers.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::flowers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// How a run of two ranks is, beside its data.
struct Setting {
  bool loss_is_collective = false;
  bool has_own_step = false;
};

// The word on two ranks' end. Samples go to them by turns: the fourth flower, in line 5, to rank 1.
std::string error_of_both(const ParallelConfig& parallel, const std::vector<Flower>& flowers,
                          const Faults& faults = {}, const Setting& setting = {}) {
  const auto body = [&](World& world) {
    tiny::spy = {};
    const Faults own_faults = world.ranks().is_first() ? Faults{} : faults;
    const Parts run =
        setting.has_own_step ? own_run_of(flowers, own_faults) : run_of(flowers, own_faults);
    if (setting.loss_is_collective) {
      run.task->before_each_loss = [&] { world.ranks().barrier(); };
    }
    TrainerSetup setup = setup_of(run, {.max_steps = 2, .batch_size = 2},
                                  {{"parallel", {}, config::write(parallel)}});
    setup.ranks = world.ranks();
    setup.device = world.device();
    try {
      Trainer<ParallelMixin, tiny::Spy>(std::move(setup)).train();
    } catch (const std::exception& error) {
      if (is_communication_error(error)) throw CommunicationError(error_text(error));
      throw;
    }
  };
  return in_ranks(2, body).message;
}

std::vector<Flower> fourth(const std::function<void(Flower& flower)>& change) {
  std::vector<Flower> flowers = eight_flowers();
  change(flowers[3]);
  return flowers;
}

TEST(FailingStepsOnRanks, NameALabelInDdp) {
  for (const bool loss_is_collective : {false, true}) {
    const std::string told = error_of_both({}, fourth([](Flower& f) { f.kind = 3; }), {},
                                           {.loss_is_collective = loss_is_collective});
    EXPECT_THAT(told, AllOf(HasSubstr("Target 3 is out of bounds"),
                            HasSubstr("kinds: int64 [2], from 1 to 3"),
                            HasSubstr("'flowers.csv', line 3: is the first of its samples")));
    // Where the loss asks the other rank, it is not computed again.
    EXPECT_EQ(told.find("line 5: kinds is 3, but") != std::string::npos, !loss_is_collective);
  }
}

TEST(FailingStepsOnRanks, NameTheUnitInFsdp) {
  EXPECT_THAT(error_of_both({.use_fsdp = true}, eight_flowers(), {.block_throws = true}),
              AllOf(HasSubstr("the block cannot do this\n  step 1, forward, the module block "
                              "(Block)\n"),
                    HasSubstr("sizes: float32 [2, 4]")));
}

TEST(FailingStepsOnRanks, NameALabelOfAPassOfTheTasksOwn) {
  EXPECT_THAT(error_of_both({}, fourth([](Flower& f) { f.kind = 3; }), {}, {.has_own_step = true}),
              AllOf(HasSubstr("line 5: kinds is 3, but cross_entropy_loss takes 0 to 2"),
                    HasSubstr("'flowers.csv', line 3: is the first of its samples")));
}

TEST(FailingStepsOnRanks, NameTheUnitOfAPassOfTheTasksOwnInFsdp) {
  EXPECT_THAT(error_of_both({.use_fsdp = true}, eight_flowers(), {.block_throws = true},
                            {.has_own_step = true}),
              AllOf(HasSubstr("the block cannot do this\n  step 1, forward, the module block "
                              "(Block)\n"),
                    HasSubstr("sizes: float32 [2, 4]")));
}

TEST(FailingStepsOnRanks, NameNanOfOneRankOnBoth) {
  for (const bool fsdp : {false, true}) {
    EXPECT_THAT(error_of_both({.use_fsdp = fsdp}, fourth([](Flower& f) { f.sizes[0] = kNan; })),
                AllOf(HasSubstr("the loss is nan on rank 1: 'flowers.csv', line 5: sizes[0] is nan "
                                "on rank 1. Repair"),
                      Not(HasSubstr("learning rate"))));
  }
}

}  // namespace
}  // namespace phalanx::flowers
