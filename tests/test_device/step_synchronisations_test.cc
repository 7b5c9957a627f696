// SPDX-License-Identifier: Apache-2.0
// A step that is not logged makes the host wait for nothing that the device computes.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/test_device/test_device.h"
#include "tests/test_device/training.h"
#include "tests/trainer/mixins/run_dir.h"

namespace phalanx::test_device {
namespace {

// Logged are the first step, each fourth, and the last: what is between the ends of two others is
// the work of a step without a log.
constexpr int64_t kSteps = 12;
constexpr int64_t kQuietSteps[] = {3, 6, 7, 10, 11};

void expect_no_drain(std::vector<std::string> overrides) {
  install();
  const tiny::RunDir folder;
  const Trained trained =
      train({folder.path(), kSteps, std::move(overrides)}, world_of_one(device()));
  for (const int64_t step : kQuietSteps) {
    EXPECT_EQ(describe_drains(trained.syncs.at(step)), "") << "in step " << step;
  }
}

TEST(StepSynchronisations, NoneWithoutALog) { expect_no_drain({}); }

TEST(StepSynchronisations, NoneWithWorkers) { expect_no_drain({"task.data.loader.num_workers=1"}); }

TEST(StepSynchronisations, NoneWithSeveralMicroBatches) {
  expect_no_drain({"training.gradient_accumulation_steps=2"});
}

TEST(StepSynchronisations, NoneWithoutClipping) {
  expect_no_drain({"training.clip_grad_norm=null"});
}

TEST(StepSynchronisations, NoneInBfloat16) {
  expect_no_drain({"mixed_precision.enabled=true", "mixed_precision.dtype=bfloat16"});
}

TEST(StepSynchronisations, NoneWithALossScale) {
  expect_no_drain({"mixed_precision.enabled=true", "mixed_precision.dtype=float16"});
}

TEST(StepSynchronisations, NoneWithOtherOptimizers) {
  for (const char* const name : {"sgd", "lion"}) {
    expect_no_drain({std::string("optimizer={name: ") + name + ", lr: 0.001}"});
  }
}

TEST(StepSynchronisations, NoneWithActivationCheckpointing) {
  expect_no_drain({"activation_checkpointing.policy=unit"});
}

// That the count can fail: a log reads values.
TEST(StepSynchronisations, SomeInALoggedStep) {
  install();
  const tiny::RunDir folder;
  const Trained trained = train({folder.path(), kSteps, {}}, world_of_one(device()));
  // What step 4 has is read after its end.
  EXPECT_NE(describe_drains(trained.syncs.at(5)), "");
}

}  // namespace
}  // namespace phalanx::test_device
