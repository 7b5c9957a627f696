// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/said_by.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(SaidBy, NamesTheRankOnce) {
  EXPECT_EQ(said_by(1, "no data"), "rank 1: no data");
  EXPECT_EQ(said_by(1, "rank 1 found no store"), "rank 1 found no store");
  EXPECT_EQ(said_by(1, "rank 0: no data"), "rank 0: no data");
  EXPECT_EQ(said_by(1, said_by(1, "no data")), "rank 1: no data");
}

TEST(SaidBy, KeepsWhatARankSaysOfAnother) {
  EXPECT_EQ(said_by(1, "rank 10 is gone"), "rank 1: rank 10 is gone");
  EXPECT_EQ(said_by(1, "rank order: 3"), "rank 1: rank order: 3");
  EXPECT_EQ(said_by(1, ""), "rank 1: ");
}

TEST(SaidIn, NamesThePlaceOnceBehindTheRank) {
  EXPECT_EQ(said_in("step 2", "no space"), "step 2: no space");
  EXPECT_EQ(said_in("step 2", "rank 0: no space"), "rank 0: step 2: no space");
  EXPECT_EQ(said_in("step 2", "rank 0: step 2: no space"), "rank 0: step 2: no space");
  EXPECT_EQ(said_in("step 2", "step 2, backward: no space"), "step 2, backward: no space");
  EXPECT_EQ(said_in("step 2", "step 20: no space"), "step 2: step 20: no space");
  EXPECT_EQ(said_by(0, said_in("step 2", said_by(0, "no space"))), "rank 0: step 2: no space");
}

}  // namespace
}  // namespace phalanx
