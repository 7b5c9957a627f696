// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/batch_transport.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/loop/tiny.h"

namespace phalanx::tiny {
namespace {

struct Rows : Batch {
  std::vector<at::Tensor*> tensors() override { return {&inputs, &targets}; }
  std::vector<at::Tensor*> model_inputs() override { return {&inputs}; }

  at::Tensor inputs = tensors::ones({2, 3});
  at::Tensor targets = tensors::ones({2});
};

StepParts parts_of(bool double_precision) {
  const Parts parts;
  return StepParts({.task_model = TaskModel(parts.task, parts.model),
                    .optimizers = {optimizer_part(parts)},
                    .double_precision = double_precision});
}

TEST(BatchTransport, CastsInputsAlone) {
  const StepParts parts = parts_of(/*double_precision=*/true);
  Rows batch;
  BatchTransport(parts).bring(batch);
  EXPECT_EQ(batch.inputs.scalar_type(), at::kDouble);
  EXPECT_EQ(batch.targets.scalar_type(), at::kFloat);
}

TEST(BatchTransport, LeavesABatchOfTheHostWhereItIs) {
  const StepParts parts = parts_of(/*double_precision=*/false);
  const BatchTransport transport(parts);
  Rows batch;
  const void* const memory = batch.inputs.const_data_ptr();
  transport.start_copies(batch);
  transport.join_copies();
  transport.bring(batch);
  EXPECT_EQ(batch.inputs.const_data_ptr(), memory);
}

}  // namespace
}  // namespace phalanx::tiny
