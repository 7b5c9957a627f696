// SPDX-License-Identifier: Apache-2.0
// Copies of the next step's micro-batches are under way while a step computes: a run that ends by
// an error frees these batches only behind their copies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/loop/flowers.h"
#include "tests/trainer/loop/spy.h"

namespace phalanx {
namespace {

TEST(TrainingFeedOnDevice, FreesBatchesBehindTheirCopies) {
  test_device::install();
  test_device::take_races();
  tiny::spy = {};
  tiny::spy.at_before_forward = [](TrainerBase&) { throw std::runtime_error("the step fails"); };
  {
    const flowers::Parts parts = flowers::run_of(flowers::eight_flowers());
    TrainerSetup setup = flowers::setup_of(parts, {.max_steps = 2, .batch_size = 4});
    setup.device = test_device::device();
    tiny::SpiedTrainer trainer(std::move(setup));
    EXPECT_THROW(trainer.train(), std::runtime_error);
  }
  EXPECT_THAT(test_device::take_races(), testing::IsEmpty());
}

}  // namespace
}  // namespace phalanx
