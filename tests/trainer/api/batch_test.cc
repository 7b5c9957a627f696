// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/batch.h"

#include <gtest/gtest.h>

#include "tests/tensors.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

TEST(Batch, GoesToADeviceWithAllItsTensors) {
  TokenBatch batch;
  batch.inputs = tensors::zeros({2, 3}, at::kLong);
  batch.targets = tensors::ones({2, 3}, at::kLong);
  batch.samples = 2;
  move_to(batch, at::kMeta);
  for (const at::Tensor* tensor : batch.tensors()) {
    EXPECT_TRUE(tensor->is_meta());
    EXPECT_EQ(tensor->scalar_type(), at::kLong);
    EXPECT_EQ(tensor->sizes(), at::IntArrayRef({2, 3}));
  }
  EXPECT_TRUE(batch.inputs.is_meta());
  EXPECT_TRUE(batch.targets.is_meta());
  EXPECT_EQ(batch.samples, 2);
}

TEST(Batch, MayLeaveATensorOut) {
  TokenBatch batch;
  batch.inputs = tensors::zeros({2, 3}, at::kLong);
  move_to(batch, at::kMeta);
  EXPECT_TRUE(batch.inputs.is_meta());
  EXPECT_FALSE(batch.targets.defined());
}

TEST(Batch, ThatIsThereAlreadyIsNotCopied) {
  TokenBatch batch;
  batch.inputs = tensors::zeros({2, 3}, at::kLong);
  batch.targets = tensors::ones({2, 3}, at::kLong);
  const void* const data = batch.inputs.const_data_ptr();
  move_to(batch, at::kCPU);
  EXPECT_EQ(batch.inputs.const_data_ptr(), data);
}

}  // namespace
}  // namespace phalanx
