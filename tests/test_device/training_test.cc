// SPDX-License-Identifier: Apache-2.0
// A GPT-2 in the program's own trainer learns on the device what it learns on the CPU.

#include "tests/test_device/training.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/test_device/test_device.h"
#include "tests/trainer/mixins/run_dir.h"

namespace phalanx::test_device {
namespace {

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

}  // namespace
}  // namespace phalanx::test_device
