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

}  // namespace
}  // namespace phalanx
