// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/measured_amount.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(MeasuredAmount, SaysWhatBoundsIt) {
  EXPECT_EQ(measured_line({.samples = 8, .all = 700, .max_batches = 2}, "a.txt"),
            "evaluating 8 of 700 samples (validation.max_batches=2; null takes all) of a.txt");
}

TEST(MeasuredAmount, SaysThatItIsAll) {
  EXPECT_EQ(measured_line({.samples = 700, .all = 700}, "a.txt"),
            "evaluating all 700 samples of a.txt");
  EXPECT_EQ(measured_line({.samples = 1, .all = 1}, "a.txt"),
            "evaluating the only sample of a.txt");
}

}  // namespace
}  // namespace phalanx
