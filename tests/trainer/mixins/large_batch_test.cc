// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/large_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace phalanx {
namespace {

using ::testing::StartsWith;

TEST(LargeBatch, IsNoneUpToTheShareOfARank) {
  EXPECT_EQ(large_batch(4, 4, 1), "");
  EXPECT_EQ(large_batch(4, 7, 2), "");
  EXPECT_EQ(large_batch(1, 1, 8), "");
}

TEST(LargeBatch, NamesBothNumbers) {
  EXPECT_THAT(large_batch(100, 54, 1),
              StartsWith("training.batch_size is 100, and the training data has 54 samples: an "
                         "epoch is one step of one micro-batch with these alone; "));
  EXPECT_THAT(large_batch(4, 5, 2), StartsWith("training.batch_size is 4, and the training data "
                                               "has 5 samples, 3 a rank at most: "));
}

}  // namespace
}  // namespace phalanx
