// SPDX-License-Identifier: Apache-2.0
// What is brought to a device, and what is left in host memory.

#include "trainer/step/batch_transport.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/tensors.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/loop/tiny.h"
#include "trainer/api/left_on_host.h"

namespace phalanx::test_device {
namespace {

struct Rows : Batch {
  std::vector<at::Tensor*> tensors() override { return {&inputs}; }
  std::vector<at::Tensor*> model_inputs() override { return {&inputs}; }

  at::Tensor inputs = tensors::ones({2, 3});
};

struct LeftRows : Rows, LeftOnHost {};

TEST(BatchTransport, BringsABatchToTheDeviceUnlessItIsLeft) {
  install();
  const tiny::Parts tiny;
  const StepParts parts({.task_model = TaskModel(tiny.task, tiny.model),
                         .optimizers = {tiny::optimizer_part(tiny)},
                         .device = device(),
                         .double_precision = true});
  const BatchTransport transport(parts);
  Rows brought, copied;
  LeftRows left;
  transport.bring(brought);
  transport.start_copies(copied);
  transport.start_copies(left);
  transport.join_copies();
  transport.bring(left);
  EXPECT_EQ(brought.inputs.device(), device());
  EXPECT_EQ(copied.inputs.device(), device());
  EXPECT_TRUE(left.inputs.is_cpu());
  EXPECT_EQ(left.inputs.scalar_type(), at::kDouble) << "its dtype is the model's";
}

}  // namespace
}  // namespace phalanx::test_device
