// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/flat_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace phalanx::fsdp {
namespace {

TEST(FlatLayout, PutsTensorsAtMultiplesOf16BytesInEqualShards) {
  const FlatLayout layout(std::vector<int64_t>{5, 0, 3}, /*element_size=*/4, /*shards=*/2);
  EXPECT_EQ(layout.place(0), (Range{0, 5}));
  EXPECT_EQ(layout.place(1), (Range{8, 8}));
  EXPECT_EQ(layout.place(2), (Range{8, 11}));
  EXPECT_EQ(layout.shard_size(), 8);
  EXPECT_EQ(layout.size(), 16);
  EXPECT_THAT(layout.gaps(), ::testing::ElementsAre(Range{5, 8}, Range{11, 16}));
  EXPECT_EQ(layout.held(0, 0), (Range{0, 5}));
  EXPECT_EQ(layout.held(0, 1).size(), 0);
  EXPECT_EQ(layout.held(2, 1), (Range{0, 3}));
  EXPECT_EQ(layout.offset_in_shard(2, 1), 0);
}

TEST(FlatLayout, MayBeEmpty) {
  const FlatLayout layout(std::vector<int64_t>{0}, 8, 3);
  EXPECT_EQ(layout.size(), 0);
  EXPECT_EQ(layout.held(0, 2), (Range{0, 0}));
}

TEST(FlatLayout, GivesEachElementToOneShard) {
  std::mt19937 random(7);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t element_size = int64_t{1} << below(4);
    const int64_t shards = 1 + below(9);
    std::vector<int64_t> sizes(static_cast<size_t>(1 + below(6)));
    for (auto& size : sizes) size = below(3) == 0 ? below(3) : below(100);
    const FlatLayout layout(sizes, element_size, shards);
    std::vector<int> owners(static_cast<size_t>(layout.size()));
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(layout.place(i).size(), sizes[i]);
      EXPECT_EQ(layout.place(i).begin * element_size % 16, 0);
      int64_t covered = 0;
      for (int64_t shard = 0; shard < shards; ++shard) {
        const Range held = layout.held(i, shard);
        EXPECT_EQ(held.size() == 0 || held.begin == covered, true);
        covered += held.size();
        for (int64_t e = 0; e < held.size(); ++e) {
          const int64_t in_flat =
              shard * layout.shard_size() + layout.offset_in_shard(i, shard) + e;
          EXPECT_EQ(in_flat, layout.place(i).begin + held.begin + e);
          ++owners[static_cast<size_t>(in_flat)];
        }
      }
      EXPECT_EQ(covered, sizes[i]);
    }
    for (const Range& gap : layout.gaps()) {
      for (int64_t e = gap.begin; e < gap.end; ++e) ++owners[static_cast<size_t>(e)];
    }
    EXPECT_THAT(owners, ::testing::Each(1));
    EXPECT_EQ(layout.shard_size() * element_size % 16, 0);
  }
}

}  // namespace
}  // namespace phalanx::fsdp
