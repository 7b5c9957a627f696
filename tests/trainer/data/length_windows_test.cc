// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/length_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace phalanx {
namespace {

using testing::ElementsAre;

// Sample i stands at place i.
std::vector<int64_t> sorted(const std::vector<int64_t>& lengths, int64_t window,
                            const std::vector<int64_t>& places) {
  const LengthWindows windows(
      static_cast<int64_t>(lengths.size()), window, [](int64_t place) { return place; },
      [&](int64_t sample) { return lengths[static_cast<size_t>(sample)]; });
  return windows.samples_at(places);
}

TEST(LengthWindows, TheLongestOfAWindowComesFirst) {
  const std::vector<int64_t> lengths{1, 3, 2, 9, 8, 8, 5};
  EXPECT_THAT(sorted(lengths, 3, {0, 1, 2, 3, 4, 5, 6}), ElementsAre(1, 2, 0, 3, 4, 5, 6));
  EXPECT_THAT(sorted(lengths, 7, {0, 1, 2, 3, 4, 5, 6}), ElementsAre(3, 4, 5, 6, 1, 2, 0));
  EXPECT_THAT(sorted(lengths, 1, {0, 1, 2, 3, 4, 5, 6}), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(sorted(lengths, 3, {6, 2, 4}), ElementsAre(6, 0, 4));
  EXPECT_THAT(sorted(lengths, 100, {0}), ElementsAre(3));
}

}  // namespace
}  // namespace phalanx
