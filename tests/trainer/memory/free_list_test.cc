// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/free_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace phalanx {
namespace {

using Block = FreeList::Block;

/// Addresses that are never looked at.
std::byte* address(std::uintptr_t number) { return reinterpret_cast<std::byte*>(number); }

Block block(std::uintptr_t begin, std::size_t bytes, std::uint64_t mapping = 1) {
  return {.begin = address(begin), .bytes = bytes, .mapping = mapping};
}

TEST(FreeList, GivesTheSmallestThatIsLargeEnough) {
  FreeList idle;
  idle.add(block(100, 10));
  idle.add(block(200, 30));
  idle.add(block(300, 20));
  EXPECT_EQ(idle.bytes(), 60U);
  EXPECT_EQ(idle.take_at_least(15)->begin, address(300));
  EXPECT_EQ(idle.take_at_least(15)->begin, address(200));
  EXPECT_FALSE(idle.take_at_least(15));
  EXPECT_EQ(idle.take_largest()->begin, address(100));
  EXPECT_FALSE(idle.take_largest());
  EXPECT_TRUE(idle.empty());
  EXPECT_EQ(idle.bytes(), 0U);
}

TEST(FreeList, NeighboursOfOneMappingBecomeOne) {
  for (const std::vector<std::uintptr_t>& order :
       {std::vector<std::uintptr_t>{100, 110, 120}, {120, 110, 100}, {100, 120, 110}}) {
    FreeList idle;
    for (const auto begin : order) idle.add(block(begin, 10));
    const auto whole = idle.take_at_least(30);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->begin, address(100));
    EXPECT_EQ(whole->bytes, 30U);
    EXPECT_TRUE(idle.empty());
  }
}

// They may be of different kinds to the kernel, which moves what is of one.
TEST(FreeList, NeighboursOfTwoMappingsStayTwo) {
  FreeList idle;
  idle.add(block(100, 10, 1));
  idle.add(block(110, 10, 2));
  EXPECT_FALSE(idle.take_at_least(11));
  EXPECT_EQ(idle.bytes(), 20U);
}

TEST(FreeList, LosesAndDoublesNothingWhateverComesAndGoes) {
  constexpr std::size_t kSize = 4096;
  std::mt19937 random(9);
  FreeList idle;
  for (std::uint64_t mapping = 1; mapping <= 3; ++mapping) {
    idle.add(block(mapping * kSize, kSize, mapping));
  }
  std::vector<Block> used;
  for (int i = 0; i < 20000; ++i) {
    const bool takes = random() % 2 == 0;
    if (takes) {
      const std::size_t bytes = 1 + random() % 300;
      auto taken = idle.take_at_least(bytes);
      if (!taken) continue;
      ASSERT_GE(taken->bytes, bytes);
      Block rest = *taken;
      rest.begin += bytes;
      rest.bytes -= bytes;
      taken->bytes = bytes;
      if (rest.bytes > 0) idle.add(rest);
      used.push_back(*taken);
    } else if (!used.empty()) {
      std::swap(used[random() % used.size()], used.back());
      idle.add(used.back());
      used.pop_back();
    }
    std::size_t in_use = 0;
    std::map<std::byte*, std::size_t> places;
    for (const Block& other : used) {
      in_use += other.bytes;
      ASSERT_TRUE(places.emplace(other.begin, other.bytes).second);
    }
    ASSERT_EQ(in_use + idle.bytes(), 3 * kSize);
    const std::byte* end = nullptr;
    for (const auto& [begin, bytes] : places) {
      ASSERT_LE(end, begin) << "two have the same";
      end = begin + bytes;
    }
  }
  for (const Block& last : used) idle.add(last);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(idle.take_largest()->bytes, kSize) << "whole again";
  EXPECT_TRUE(idle.empty());
}

}  // namespace
}  // namespace phalanx
