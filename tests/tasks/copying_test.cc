// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/trainer/registered.h"
#include "trainer/api/task.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

constexpr const char* kSmall =
    "{symbols: 5, length: 4, training_samples: 6, validation_samples: 3, loader: {num_workers: 0}}";

std::unique_ptr<Batch> first_batch(Phase phase, int64_t size) {
  const auto task = make_registered<AnyTask>("copying", kSmall);
  auto source = task->build_data(phase, {.batch_size = size, .seed = 0});
  source->start_epoch(0, 0);
  return source->next();
}

TEST(Copying, TheSecondHalfRepeatsTheFirstAndAloneCounts) {
  const auto any = first_batch(Phase::train, 6);
  const auto& batch = static_cast<const TokenBatch&>(*any);
  ASSERT_EQ(batch.inputs.sizes().vec(), (std::vector<int64_t>{6, 7}));
  EXPECT_TRUE(batch.inputs.slice(1, 0, 3).equal(batch.inputs.slice(1, 4)));
  EXPECT_TRUE(batch.targets.slice(1, 3).equal(batch.inputs.slice(1, 0, 4)));
  EXPECT_TRUE(batch.targets.slice(1, 0, 3).eq(-100).all().item().toBool());
  EXPECT_EQ(batch.samples, 6);
  EXPECT_EQ(batch.tokens, 24);
}

TEST(Copying, ValidationHasOtherSequences) {
  const auto train = first_batch(Phase::train, 3);
  const auto validate = first_batch(Phase::validate, 3);
  EXPECT_FALSE(static_cast<const TokenBatch&>(*train).inputs.equal(
      static_cast<const TokenBatch&>(*validate).inputs));
}

TEST(Copying, HasNoValidationWithoutSamplesForIt) {
  const auto task = make_registered<AnyTask>("copying", "{validation_samples: 0}");
  EXPECT_EQ(task->build_data(Phase::validate, {}), nullptr);
}

}  // namespace
}  // namespace phalanx
