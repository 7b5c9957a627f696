// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/byte_trie.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx {
namespace {

using Found = std::vector<std::pair<std::size_t, int32_t>>;

Found prefixes(const ByteTrie& trie, std::string_view text) {
  Found found;
  trie.find_prefixes(
      text, [&](std::size_t length, int32_t number) { found.emplace_back(length, number); });
  return found;
}

TEST(ByteTrie, FindsWhatATextBeginsWith) {
  const std::string zero("a\0b", 3);
  const ByteTrie trie(
      {{"abc", 1}, {"a", 2}, {"b", 3}, {"ab\xff", 4}, {"", 5}, {"b", 6}, {zero, 7}});
  EXPECT_EQ(prefixes(trie, "abcd"), (Found{{1, 2}, {3, 1}}));
  EXPECT_EQ(prefixes(trie, "ab\xff"), (Found{{1, 2}, {3, 4}}));
  EXPECT_EQ(prefixes(trie, "b"), (Found{{1, 6}})) << "the last of two";
  EXPECT_EQ(prefixes(trie, zero), (Found{{1, 2}, {3, 7}}));
  EXPECT_EQ(prefixes(trie, "xa"), Found());
  EXPECT_EQ(prefixes(trie, ""), Found());
  EXPECT_TRUE(trie.has_root('a'));
  EXPECT_FALSE(trie.has_root('c'));
  EXPECT_EQ(prefixes(ByteTrie(), "a"), Found());
}

}  // namespace
}  // namespace phalanx
