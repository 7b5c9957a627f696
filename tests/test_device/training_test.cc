// SPDX-License-Identifier: Apache-2.0
// A GPT-2 in the program's own trainer learns on the device what it learns on the CPU.

#include "tests/test_device/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"

namespace phalanx::test_device {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kSteps = 6;
constexpr int64_t kFewestOperatorsAStep = 100;

Trained train_on(at::Device device, const std::vector<std::string>& overrides) {
  const tiny::RunDir folder;
  return train({folder.path(), kSteps, overrides}, world_of_one(device));
}

// The same bits, with every operator on the device.
void expect_trains_alike(const std::vector<std::string>& overrides) {
  install();
  const int64_t before = counters().operators;
  const auto on_device = train_on(device(), overrides).weights;
  EXPECT_GT(counters().operators - before, kSteps * kFewestOperatorsAStep);
  EXPECT_THAT(take_races(), IsEmpty());
  const auto on_cpu = train_on(at::kCPU, overrides).weights;
  ASSERT_EQ(on_device.size(), on_cpu.size());
  for (const auto& [name, weight] : on_cpu) {
    EXPECT_TRUE(on_device.at(name).equal(weight)) << name;
  }
}

TEST(TrainingOnTheDevice, GivesTheCpusBitsWithAdamw) {
  expect_trains_alike({"optimizer={name: adamw, lr: 0.001}"});
}

TEST(TrainingOnTheDevice, GivesTheCpusBitsWithSgd) {
  expect_trains_alike({"optimizer={name: sgd, lr: 0.01, momentum: 0.9}"});
}

TEST(TrainingOnTheDevice, GivesTheCpusBitsWithLion) {
  expect_trains_alike({"optimizer={name: lion, lr: 0.001}"});
}

// The next step's micro-batches are on their way when a signal ends the run, and are dropped.
TEST(TrainingOnTheDevice, FreesNoMicroBatchThatIsStillCopied) {
  install();
  StopSignal::install();
  const tiny::RunDir folder;
  const World world = world_of_one(device());
  const auto trainer = make_trainer({folder.path(), kSteps, {}}, world);
  int64_t steps = 0;
  trainer->when_step_ends([&](int64_t step) {
    steps = step;
    if (step == 2) std::raise(SIGTERM);
  });
  trainer->train();
  EXPECT_LT(steps, kSteps);
  EXPECT_THAT(take_races(), IsEmpty());
}

}  // namespace
}  // namespace phalanx::test_device
