// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Pieces; a gap stands in brackets.
std::vector<std::string> pieces_of(const std::string& pattern, std::string_view text) {
  const SplitPattern split(pattern);
  SplitPattern::Pieces pieces(split, text);
  SplitPattern::Piece piece;
  std::vector<std::string> found;
  while (pieces.next(piece)) {
    found.push_back(piece.is_match ? std::string(piece.text) : "[" + std::string(piece.text) + "]");
  }
  return found;
}

TEST(SplitPattern, GivesMatchesAndGaps) {
  EXPECT_THAT(pieces_of("[0-9]+", "a12b3"), ElementsAre("[a]", "12", "[b]", "3"));
  EXPECT_THAT(pieces_of("[0-9]+", "12"), ElementsAre("12"));
  EXPECT_THAT(pieces_of("[0-9]+", "ab"), ElementsAre("[ab]"));
  EXPECT_THAT(pieces_of("[0-9]+", ""), ElementsAre());
}

TEST(SplitPattern, PassesOverEmptyMatches) {
  EXPECT_THAT(pieces_of("x*", "axxb"), ElementsAre("[a]", "xx", "[b]"));
}

TEST(SplitPattern, KnowsUnicode) {
  EXPECT_THAT(pieces_of(R"(\p{L}+|\p{N}+)", "\u00fcn\u0438 \u0663\u2167"),
              ElementsAre("\u00fcn\u0438", "[ ]", "\u0663\u2167"));
  EXPECT_THAT(pieces_of("(?i:'S)", "'\u017f"), ElementsAre("'\u017f"));
}

TEST(SplitPattern, TakesUnicodesWhiteSpace) {
  for (const char* space : {" ", "\t", "\u0085", "\u00a0", "\u2028", "\u3000"}) {
    EXPECT_THAT(pieces_of(R"(\s+)", space), ElementsAre(space));
    EXPECT_THAT(pieces_of(R"([^\s\p{L}]+)", space), ElementsAre(testing::StartsWith("[")));
    EXPECT_THAT(pieces_of(R"(\S+)", space), ElementsAre(testing::StartsWith("[")));
  }
  EXPECT_THAT(pieces_of(R"(\s+)", "\u180e"), ElementsAre("[\u180e]"));
  EXPECT_THAT(pieces_of(R"(\\s)", "\\s "), ElementsAre("\\s", "[ ]"));
}

TEST(SplitPattern, TakesLongRuns) {
  const std::string spaces(1 << 20, ' ');
  EXPECT_THAT(pieces_of(R"(\s+(?!\S)|\s+)", spaces + "x"),
              ElementsAre(spaces.substr(1), " ", "[x]"));
  EXPECT_EQ(pieces_of("(?:a|b)+", std::string(1 << 18, 'a')).size(), 1);
}

TEST(SplitPattern, RefusesWhatIsNoPattern) {
  try {
    const SplitPattern broken("a(b");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("'a(b'"));
    EXPECT_THAT(e.what(), HasSubstr("parenthesis"));
  }
}

}  // namespace
}  // namespace phalanx
