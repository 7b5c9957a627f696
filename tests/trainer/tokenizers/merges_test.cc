// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/merges.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace phalanx {
namespace {

using Tokens = std::vector<int32_t>;

Tokens applied(const Merges& merges, Tokens tokens, size_t begin = 0) {
  merges.apply(tokens, begin);
  return tokens;
}

TEST(Merges, JoinNeighboursInTheirOrder) {
  Merges merges;
  merges.add(2, 3, 10);  // Before 1 and 2, which needs the same 2.
  merges.add(1, 2, 11);
  merges.add(1, 10, 12);
  EXPECT_EQ(applied(merges, {1, 2, 3}), Tokens{12});
  EXPECT_EQ(applied(merges, {1, 2, 1, 2, 3}), (Tokens{11, 12}));
  EXPECT_EQ(applied(merges, {3, 2, 1}), (Tokens{3, 2, 1}));
}

TEST(Merges, JoinTheLeftmostOfEqualPairsFirst) {
  Merges merges;
  merges.add(1, 1, 2);
  EXPECT_EQ(applied(merges, {1, 1, 1}), (Tokens{2, 1}));
  EXPECT_EQ(applied(merges, Tokens(101, 1)).size(), 51);
}

TEST(Merges, GiveAPairItsLastPlace) {
  Merges merges;
  merges.add(1, 2, 10);
  merges.add(2, 3, 11);
  EXPECT_FALSE(merges.repeat_pairs());
  merges.add(1, 2, 10);
  EXPECT_TRUE(merges.repeat_pairs());
  EXPECT_EQ(applied(merges, {1, 2, 3}), (Tokens{1, 11}));
}

TEST(Merges, LeaveWhatStandsBefore) {
  Merges merges;
  merges.add(1, 1, 2);
  EXPECT_EQ(applied(merges, {1, 1, 1, 1}, 2), (Tokens{1, 1, 2}));
  EXPECT_EQ(applied(merges, {}), Tokens{});
  EXPECT_EQ(applied(merges, {7}, 1), Tokens{7});
}

// The last place of a pair in the list, or its size.
size_t rank_of(const std::vector<std::array<int32_t, 3>>& list, int32_t left, int32_t right) {
  for (size_t rank = list.size(); rank-- > 0;) {
    if (list[rank][0] == left && list[rank][1] == right) return rank;
  }
  return list.size();
}

// Both ways to the next merge, told apart by the length, give the same. The reference looks through
// all pairs each time.
Tokens reference(const std::vector<std::array<int32_t, 3>>& list, Tokens tokens) {
  while (true) {
    size_t best = list.size();
    size_t place = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const size_t rank = rank_of(list, tokens[i], tokens[i + 1]);
      if (rank >= best) continue;
      best = rank;
      place = i;
    }
    if (best == list.size()) return tokens;
    tokens[place] = list[best][2];
    tokens.erase(tokens.begin() + static_cast<int64_t>(place) + 1);
  }
}

TEST(Merges, AreTheSameInWordsAndInLongRuns) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::array<int32_t, 3>> list;
    Merges merges;
    for (int32_t token = 3; token < 12; ++token) {
      std::uniform_int_distribution<int32_t> any(0, token - 1);
      list.push_back({any(random), any(random), token});
      merges.add(list.back()[0], list.back()[1], token);
    }
    std::uniform_int_distribution<int32_t> letter(0, 2);
    for (const size_t length : {2, 10, 64, 65, 150}) {
      Tokens tokens(length);
      for (int32_t& token : tokens) token = letter(random);
      EXPECT_EQ(applied(merges, tokens), reference(list, tokens)) << "of " << length;
    }
  }
}

}  // namespace
}  // namespace phalanx
