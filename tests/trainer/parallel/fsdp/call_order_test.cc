// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/call_order.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace phalanx::fsdp::testing {
namespace {

/// What a pass was told comes next, call by call: "1!" where that is steady, "1?" where it is not,
/// "-" for nothing.
std::string nexts_of(CallOrder& order, const std::vector<std::size_t>& calls,
                     bool has_backward = true) {
  order.begin();
  std::string text;
  for (const std::size_t unit : calls) {
    const auto next = order.call(unit, has_backward);
    text += !next ? "-" : std::to_string(next->unit) + (next->is_steady ? "!" : "?");
    text += " ";
  }
  if (has_backward) order.end();
  return text;
}

TEST(CallOrder, KnowsNothingInTheFirstPass) {
  CallOrder order;
  EXPECT_EQ(nexts_of(order, {0, 1, 2}), "- - - ");
}

TEST(CallOrder, GoesByThePassBefore) {
  CallOrder order;
  nexts_of(order, {0, 1, 1, 2});
  EXPECT_EQ(nexts_of(order, {0, 1, 1, 2}), "1! 1! 2! - ");
  EXPECT_EQ(nexts_of(order, {0, 1, 1, 2}), "1! 1! 2! - ");
}

TEST(CallOrder, IsNotSteadyOnceAPassGoesAnotherWay) {
  CallOrder order;
  nexts_of(order, {0, 1, 2, 3});
  // At the same place it may come back to the same units: whether for good, nobody knows.
  EXPECT_EQ(nexts_of(order, {0, 2, 2, 3}), "1! - 3? - ");
}

TEST(CallOrder, IsSteadyAgainWhenAWholePassHasRepeatedTheOneBefore) {
  CallOrder order;
  nexts_of(order, {0, 1, 2});
  nexts_of(order, {0, 2});
  EXPECT_EQ(nexts_of(order, {0, 2}), "2? - ") << "the first of its kind";
  EXPECT_EQ(nexts_of(order, {0, 2}), "2! - ");
}

TEST(CallOrder, TakesAShorterPassForAnotherWay) {
  CallOrder order;
  nexts_of(order, {0, 1, 2});
  EXPECT_EQ(nexts_of(order, {0, 1}), "1! 2! ");
  EXPECT_EQ(nexts_of(order, {0, 1, 2}), "1? - - ");
}

TEST(CallOrder, RemembersOnlyPassesWithABackwardOne) {
  CallOrder order;
  nexts_of(order, {0, 1, 2});
  EXPECT_EQ(nexts_of(order, {0, 2}, /*has_backward=*/false), "1! - ");
  EXPECT_EQ(nexts_of(order, {0, 1, 2}), "1! 2! - ");
}

TEST(CallOrder, ForgetsAPassWhoseBackwardNeverCame) {
  CallOrder order;
  nexts_of(order, {0, 1});
  order.begin();
  order.call(1, true);
  EXPECT_EQ(nexts_of(order, {0, 1}), "1! - ");
  EXPECT_TRUE(order.calls().empty());
}

}  // namespace
}  // namespace phalanx::fsdp::testing
