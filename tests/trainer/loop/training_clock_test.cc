// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/training_clock.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(TrainingClock, CountsFromWhereTheRunWas) {
  TrainingClock clock;
  EXPECT_EQ(clock.elapsed(), 0);
  clock.go_on_from(30);
  EXPECT_EQ(clock.elapsed(), 30) << "this process has not begun";
  clock.begin();
  EXPECT_GT(clock.elapsed(), 30);
  EXPECT_LT(clock.split().total, clock.elapsed()) << "the total is this process's alone";
}

TEST(TrainingClock, SumsWhatPassesTake) {
  TrainingClock clock;
  clock.sums().validation += 2;
  EXPECT_EQ(clock.split().validation, 2);
  EXPECT_EQ(clock.split().total, 0);
}

}  // namespace
}  // namespace phalanx
