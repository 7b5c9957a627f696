// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_environment.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(PlaceIn, RanksOfEarlierNodesComeFirst) {
  const Order order{.kind = Order::Kind::run, .round = 3, .members = {{7, 2}, {3, 4}, {5, 1}}};
  const NodePlace place = place_in(order, 1);
  EXPECT_EQ(place.group_rank, 1);
  EXPECT_EQ(place.group_world_size, 3);
  EXPECT_EQ(place.first_rank, 2);
  EXPECT_EQ(place.world_size, 7);
  EXPECT_EQ(place.restart_count, 2);
}

}  // namespace
}  // namespace phalanx
