// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/interpolation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "trainer/config/syntax/source_text.h"

namespace phalanx::config {
namespace {

std::string shown(const InterpolatedText& text);

/// "<path>" or "<resolver:argument|'quoted argument'>"
std::string shown(const Interpolation& interpolation) {
  std::string result = "<" + shown(interpolation.path);
  if (interpolation.resolver) result += *interpolation.resolver + ":";
  for (std::size_t i = 0; i < interpolation.arguments.size(); ++i) {
    const auto& [text, is_quoted] = interpolation.arguments[i];
    if (i > 0) result += "|";
    result += is_quoted ? "'" + shown(text) + "'" : shown(text);
  }
  return result + ">";
}

std::string shown(const InterpolatedText& text) {
  std::string result;
  for (const TextPart& part : text) {
    result += part.literal;
    for (const Interpolation& inner : part.interpolation) result += shown(inner);
  }
  return result;
}

std::string parsed(std::string_view text) {
  try {
    return shown(parse_interpolated(text));
  } catch (const TextDefect& defect) {
    return std::to_string(defect.position) + ": " + defect.message;
  }
}

TEST(ParseInterpolated, TellsTextFromInterpolations) {
  EXPECT_EQ(parsed(""), "");
  EXPECT_EQ(parsed("x"), "x");
  EXPECT_EQ(parsed("${a.b}"), "<a.b>");
  EXPECT_EQ(parsed("x ${ a } y${b}"), "x <a> y<b>");
  EXPECT_EQ(parsed("${a}}"), "<a>}");
  EXPECT_EQ(parsed("${a.${b}.c }"), "<a.<b>.c>");
}

TEST(ParseInterpolated, TakesTheMeaningFromMarks) {
  EXPECT_EQ(parsed(R"(\${a})"), "${a}");
  EXPECT_EQ(parsed(R"(\\${a})"), R"(\<a>)");
  EXPECT_EQ(parsed(R"(\\\${a})"), R"(\${a})");
  EXPECT_EQ(parsed(R"(a\b\\c)"), R"(a\b\\c)");
  EXPECT_EQ(parsed(R"(a\)"), R"(a\)");
}

TEST(ParseInterpolated, ReadsTheArgumentsOfTheEnvironment) {
  EXPECT_EQ(parsed("${oc.env:A}"), "<oc.env:A>");
  EXPECT_EQ(parsed("${oc.env: A , b c }"), "<oc.env:A|b c>");
  EXPECT_EQ(parsed("${oc.env:A,}"), "<oc.env:A|>");
  EXPECT_EQ(parsed("${oc.env:A,' b, }'}"), "<oc.env:A|' b, }'>");
  EXPECT_EQ(parsed(R"(${oc.env:A,'it\'s \\' })"), R"(<oc.env:A|'it's \'>)");
  EXPECT_EQ(parsed(R"(${oc.env:A,b\, \} \a\ })"), R"(<oc.env:A|b, } \a >)");
  EXPECT_EQ(parsed(R"(${oc.env:A,\${b}})"), "<oc.env:A|${b}>");
  EXPECT_EQ(parsed("${oc.env:A,[1, {b: 2}]}"), "<oc.env:A|[1, {b: 2}]>");
  EXPECT_EQ(parsed("${oc.env:${a},x${b} }"), "<oc.env:<a>|x<b>>");
  EXPECT_EQ(parsed("${oc.env:A,b,c}"), "<oc.env:A|b|c>");
}

TEST(ParseInterpolated, LeavesTheArgumentsOfOthersAlone) {
  EXPECT_EQ(parsed("${a:{b: '}"), "0: the interpolation ${ is not closed by }");
  EXPECT_EQ(parsed("${a:{b: '}}x"), "<a:>x");
  EXPECT_EQ(parsed("${:1}"), "<:>");
}

TEST(ParseInterpolated, SaysWhereAMistakeBegins) {
  EXPECT_EQ(parsed("x${a"), "1: the interpolation ${ is not closed by }");
  EXPECT_EQ(parsed("x${a${b}"), "1: the interpolation ${ is not closed by }");
  EXPECT_EQ(parsed("x${a${b"), "4: the interpolation ${ is not closed by }");
  EXPECT_EQ(parsed("x${oc.env:A,'b}"), "1: in ${oc.env:...} a quoted text is not closed");
  EXPECT_EQ(parsed("${oc.env:A,'b' c}"),
            "0: in ${oc.env:...} more follows behind a quoted text; quote all of it");
  std::string deep;
  for (int i = 0; i < 17; ++i) deep += "${";
  EXPECT_EQ(parsed(deep), "32: the interpolations nest too deep");
}

TEST(InterpolationEnd, IsBehindTheBraceThatCloses) {
  EXPECT_EQ(interpolation_end("x${a}y", 1), 5);
  EXPECT_EQ(interpolation_end("${oc.env:A,'}'}}", 0), 15);
  EXPECT_THROW(interpolation_end("${oc.env:A,'}", 0), TextDefect);
}

}  // namespace
}  // namespace phalanx::config
