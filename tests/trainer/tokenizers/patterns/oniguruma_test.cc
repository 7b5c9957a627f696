// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/patterns/oniguruma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/split_pattern.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  const SplitPattern compiled(pattern);
  SplitPattern::Matches found(compiled, text);
  std::vector<std::string> texts;
  size_t begin = 0;
  size_t end = 0;
  while (found.next(begin, end)) texts.push_back(text.substr(begin, end - begin));
  return texts;
}

TEST(Oniguruma, MeansWhatItSays) {
  EXPECT_THAT(matches("\\w+", "a\u0301_1-\u00b2 \u00bd"),
              ElementsAre("a\u0301_1", "\u00b2", "\u00bd"));
  EXPECT_THAT(matches("[^\\w]", "a-b"), ElementsAre("-"));
  EXPECT_THAT(matches("\\h+", "x1Fg"), ElementsAre("1F"));
  EXPECT_THAT(matches("a\\b", "a ab a"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("a\\B", "a ab a"), ElementsAre("a"));
  EXPECT_THAT(matches("^a$", "a\nb\na"), ElementsAre("a", "a")) << "of each line";
  EXPECT_THAT(matches("a.", "a\nab"), ElementsAre("ab"));
  EXPECT_THAT(matches("(?m:a.)", "a\nab"), ElementsAre("a\n", "ab"));
  EXPECT_THAT(matches("a(?i:b)", "aBAB"), ElementsAre("aB"));
  EXPECT_THAT(matches("\\p{Letter}+", "ab1"), ElementsAre("ab"));
  EXPECT_THAT(matches("\\p{^Nd}+|\\P{L}", "ab1"), ElementsAre("ab", "1"));
  EXPECT_THAT(matches("[\\d\\u3042]+", "a1\u3042"), ElementsAre("1\u3042"));
  EXPECT_THAT(matches("\\s", "\u180e\u0085"), ElementsAre("\u0085"));
}

// In PCRE2 "{1,3}+" would be possessive.
TEST(Oniguruma, RepeatsAnInterval) {
  EXPECT_THAT(matches("\\d{1,3}+", "12345"), ElementsAre("12345"));
  EXPECT_THAT(matches("(?:ab|c){2}+", "ababcab"), ElementsAre("ababcab"));
  EXPECT_THAT(matches("[ab]{2}?c", "abc"), ElementsAre("abc"));
  EXPECT_THAT(matches("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(matches("a{b}", "a{b}"), ElementsAre("a{b}"));
  EXPECT_THAT(matches("a++b", "aab"), ElementsAre("aab"));
}

TEST(Oniguruma, GivesEmptyMatchesAsItsRustBindingDoes) {
  EXPECT_THAT(matches("a*", "baac"), ElementsAre("", "aa", ""));
  EXPECT_THAT(matches("", "\u00e9"), ElementsAre("", ""));
  EXPECT_THAT(matches("$", "a\nb"), ElementsAre("", ""));
}

TEST(Oniguruma, RefusesWhatPcre2TakesInAnotherSense) {
  for (const char* pattern :
       {"\\X", "[[:alpha:]]", "[a[bc]]", "[a&&b]", "\\G", "\\R", "(?x)a", "[\\W]", "\\p{Alnum}",
        "\\p{Punct}", "\\pL", "[]a]", "[a", "a\\", "\\u12", "\\y"}) {
    EXPECT_THROW(SplitPattern{pattern}, UserError) << pattern;
  }
}

}  // namespace
}  // namespace phalanx
