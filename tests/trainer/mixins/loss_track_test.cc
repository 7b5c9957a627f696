// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/loss_track.h"

#include <gtest/gtest.h>

#include <limits>

namespace phalanx {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(LossTrack, TellsTheLastAndTheBest) {
  LossTrack track;
  EXPECT_EQ(track.line("train loss"), "");
  track.add(kNan, 1);
  EXPECT_EQ(track.line("train loss"), "\n  train loss  last nan, best nan at step 1");
  track.add(0.25, 2);
  track.add(0.5, 3);
  EXPECT_EQ(track.line("train loss"), "\n  train loss  last 0.5000, best 0.2500 at step 2");
}

TEST(LossTrack, ForgetsStepsThatAreUndone) {
  LossTrack track;
  track.add(4, 1);
  track.add(2, 2);
  track.add(3, 3);
  track.add(1, 4);
  track.forget_after(4);
  EXPECT_EQ(track.line("loss"), "\n  loss        last 1.0000, best 1.0000 at step 4");
  track.forget_after(3);
  EXPECT_EQ(track.line("loss"), "\n  loss        best 2.0000 at step 2") << "the last is undone";
  track.add(2.5, 4);
  EXPECT_EQ(track.line("loss"), "\n  loss        last 2.5000, best 2.0000 at step 2");
  track.forget_after(0);
  EXPECT_EQ(track.line("loss"), "");
}

}  // namespace
}  // namespace phalanx
