// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/end_to_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EndToEnd, FindsThePartOfAPlaceAndSkipsEmptyOnes) {
  EndToEnd parts;
  for (const int64_t length : {0, 3, 0, 0, 1, 0}) parts.add(length);
  EXPECT_EQ(parts.parts(), 6);
  EXPECT_EQ(parts.size(), 4);
  EXPECT_THAT(parts.lengths(), ElementsAre(0, 3, 0, 0, 1, 0));
  for (const int64_t place : {0, 1, 2}) EXPECT_EQ(parts.part_at(place), 1);
  EXPECT_EQ(parts.part_at(3), 4);
  EXPECT_EQ(parts.part_at(4), parts.parts());
  EXPECT_EQ(parts.begin(4), 3);
  EXPECT_EQ(parts.end(4), 4);
  EXPECT_EQ(parts.length(4), 1);
  EXPECT_THROW(parts.end(6), std::out_of_range);
}

TEST(EndToEnd, OfNothingIsEmpty) {
  EXPECT_EQ(EndToEnd().size(), 0);
  EXPECT_EQ(EndToEnd().part_at(0), 0);
  EXPECT_THAT(EndToEnd().lengths(), IsEmpty());
}

}  // namespace
}  // namespace phalanx
