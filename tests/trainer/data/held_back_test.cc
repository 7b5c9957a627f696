// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/held_back.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {
namespace {

TEST(HeldBack, IsTheShareUpToTheLimit) {
  const HeldBack rule{.fraction = 0.1, .limit = 1000};
  EXPECT_EQ(rule.of(0), 0);
  EXPECT_EQ(rule.of(99), 9);
  EXPECT_EQ(rule.of(10'000), 1000);
  EXPECT_FALSE(rule.is_bounded(10'000));
  EXPECT_EQ(rule.of(10'010), 1000);
  EXPECT_TRUE(rule.is_bounded(10'010));
  EXPECT_EQ(rule.of(4'000'000'000), 1000);
}

TEST(HeldBack, WithoutALimitIsTheShare) {
  const HeldBack rule{.fraction = 0.1, .limit = std::nullopt};
  EXPECT_EQ(rule.of(4'000'000'000), 400'000'000);
  EXPECT_FALSE(rule.is_bounded(4'000'000'000));
}

TEST(HeldBack, OfNoShareIsNothing) {
  const HeldBack rule{.fraction = 0, .limit = 1000};
  EXPECT_EQ(rule.of(10'000), 0);
  EXPECT_FALSE(rule.is_bounded(10'000));
}

std::string text(const HeldBack& rule, const std::vector<int64_t>& sizes) {
  HeldBackSum sum;
  for (const int64_t size : sizes) sum.add(rule, size);
  return sum.text("bytes", "task.data.validation_limit");
}

TEST(HeldBackSum, SaysHowMuchAndWhatBoundsIt) {
  EXPECT_EQ(text({.fraction = 0.1, .limit = 100}, {1000}), "the last 100 of 1000 bytes");
  EXPECT_EQ(text({.fraction = 0.1, .limit = 100}, {2000}),
            "the last 100 of 2000 bytes, bounded by task.data.validation_limit");
  EXPECT_EQ(text({.fraction = 0.1, .limit = 100}, {2000, 500}),
            "the last 150 of 2500 bytes, of each source its own, bounded by "
            "task.data.validation_limit");
  EXPECT_EQ(text({.fraction = 0, .limit = 100}, {2000}), "");
}

}  // namespace
}  // namespace phalanx
