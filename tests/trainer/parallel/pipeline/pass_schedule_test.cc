// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/pass_schedule.h"

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/pipeline/letters.h"
#include "trainer/parallel/pipeline/open_passes.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::pipeline {
namespace {

// Steps without a backward pass may follow each other: each would keep its activations.
TEST(PassSchedule, GivesUpTheActivationsOfAPassThatIsLeftOut) {
  const auto outcome = in_ranks(2, [](World& world) {
    Letters letters(world.ranks());
    PassSchedule schedule(letters, /*stage=*/0, /*behind=*/1);
    OpenPasses open;
    auto graph = open.open(1);
    at::Tensor output = tensors::zeros({2, 3}).requires_grad_(true);
    const c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl> activations(
        output.getIntrusivePtr());
    schedule.add({.number = 1, .output = output});
    output.reset();
    schedule.release_left_out(open);
    require(!activations.expired(), "a backward pass may come");
    graph.reset();
    schedule.release_left_out(open);
    require(activations.expired(), "none comes any more");
    letters.shutdown();
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx::pipeline
