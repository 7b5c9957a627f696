// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/core_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {
namespace {

using testing::DoubleNear;
using testing::Optional;

constexpr std::string_view kStat =
    "cpu  900 10 300 4000 50 6 7 8 0 0\n"
    "cpu0 100 1 30 400 5 6 7 8 90 9\n"
    "cpu1 200 2 40 500 6 0 0 0 0 0\n"
    "cpu10 300 3 50 600 7 0 0 0 0 0\n"
    "intr 12 1 2 3\n"
    "cpu2 1 1 1 1 1 1 1 1 1 1\n";

std::optional<CoreTimes> times(std::vector<int64_t> units, std::string_view text = kStat) {
  return core_times(text, units, 100);
}

TEST(CoreTimes, AreThoseOfTheseHardwareThreads) {
  const auto first = times({0});
  ASSERT_TRUE(first);
  EXPECT_DOUBLE_EQ(first->idle, 4.05);
  EXPECT_DOUBLE_EQ(first->total, 5.57) << "the time of guests is in the first field, too";
  const auto both = times({1, 10});
  ASSERT_TRUE(both);
  EXPECT_DOUBLE_EQ(both->idle, 5.06 + 6.07);
  EXPECT_DOUBLE_EQ(both->total, 7.48 + 9.60);
}

TEST(CoreTimes, NeedALineOfEach) {
  EXPECT_FALSE(times({0, 3}));
  EXPECT_FALSE(times({2})) << "behind the lines of hardware threads";
  EXPECT_FALSE(times({0}, ""));
  EXPECT_FALSE(times({0}, "cpu0 1 2 3 4\n"));
  EXPECT_FALSE(times({0}, "cpu0 1 2 x 4 5 6 7 8\n"));
  EXPECT_FALSE(times({0}, "cpux 1 2 3 4 5 6 7 8\n"));
  EXPECT_TRUE(times({0}, "cpu0 1 2 3 4 5 6 7 8")) << "without an end of line";
}

/// What others leave of two cores in half a second, in which the program computes `own` seconds and
/// nothing runs for `idle`.
std::optional<double> left(double idle, double own) {
  return cores_left({.moment = 10, .times = {.idle = 70, .total = 90}, .own = 30},
                    {.moment = 10.5, .times = {.idle = 70 + idle, .total = 91}, .own = 30 + own},
                    2);
}

TEST(CoresLeft, AreIdleOrThisProgramS) {
  EXPECT_THAT(left(0, 1), Optional(DoubleNear(2, 1e-9))) << "alone";
  EXPECT_THAT(left(0, 0.5), Optional(DoubleNear(1, 1e-9))) << "half of the cores";
  EXPECT_THAT(left(0.75, 0), Optional(DoubleNear(1.5, 1e-9))) << "asleep";
  EXPECT_THAT(left(0.25, 0.5), Optional(DoubleNear(1.5, 1e-9)));
}

TEST(CoresLeft, AreNoMoreThanThere) {
  EXPECT_THAT(left(0.6, 0.6), Optional(2.0)) << "the kernel rounds";
  EXPECT_THAT(left(0, -20), Optional(0.0)) << "a rank has ended";
  EXPECT_THAT(left(-5, 0), Optional(0.0));
}

TEST(CoresLeft, AreUnknownWhereTheKernelDoesNotCount) {
  const UseOfCores look{.moment = 10, .times = {.idle = 70, .total = 90}, .own = 30};
  UseOfCores next = look;
  next.moment = 11;
  EXPECT_FALSE(cores_left(look, next, 2));
  next.times.total = 91;
  EXPECT_TRUE(cores_left(look, next, 2));
  next.moment = look.moment;
  EXPECT_FALSE(cores_left(look, next, 2));
}

}  // namespace
}  // namespace phalanx
