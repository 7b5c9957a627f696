// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/broken_samples.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/parallel/in_ranks.h"

namespace phalanx {
namespace {

BrokenSample sample_of(const char* source, const char* kind) {
  return {.source = source, .kind = kind, .message = "12"};
}

TEST(BrokenSamples, AreNoneAtFirst) {
  EXPECT_EQ(BrokenSamples().summary(Ranks()), "");
  EXPECT_EQ(BrokenSamples().count(), 0);
}

TEST(BrokenSamples, AreCountedBySourceAndKindOverAllRanks) {
  EXPECT_EQ(in_ranks(3,
                     [](World& world) {
                       BrokenSamples samples;
                       std::vector<BrokenSample> mine{sample_of("b", "cut off")};
                       if (world.ranks().is_first()) mine.push_back(sample_of("a", "too\nlong"));
                       if (world.ranks().rank() == 2) mine.clear();
                       samples.add(mine, 3);
                       samples.add({}, 0);
                       require(samples.count() == 3, "all ranks'");
                       require(samples.summary(world.ranks()) ==
                                   "1 of 'a' (too\nlong), 2 of 'b' (cut off)",
                               samples.summary(world.ranks()));
                     })
                .message,
            "");
}

}  // namespace
}  // namespace phalanx
