// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/normalizers/read_normalizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using nlohmann::json;

std::string normalized(const json& object, const std::string& text) {
  NormalizedText changed{.text = text, .at_start = 0, .most_bytes = SIZE_MAX};
  read_normalizer(object)->apply(changed);
  return changed.text;
}

json of_type(const char* type) { return {{"type", type}}; }

json replace(const char* kind, const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

json strip(bool left, bool right) {
  return {{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}};
}

json bert(bool cleans, bool chinese, const json& accents, bool lowercases) {
  return {{"type", "BertNormalizer"},
          {"clean_text", cleans},
          {"handle_chinese_chars", chinese},
          {"strip_accents", accents},
          {"lowercase", lowercases}};
}

struct Example {
  json object;
  std::string text;
  std::string expected;
};

TEST(ReadNormalizer, MakesEachKind) {
  const std::vector<Example> examples{
      {of_type("NFC"), "e\u0301 \u00e9", "\u00e9 \u00e9"},
      {of_type("NFD"), "\u00e9", "e\u0301"},
      {of_type("NFKC"), "\ufb01\u00b2", "fi2"},
      {of_type("NFKD"), "\ufb01\u00e9", "fie\u0301"},
      {of_type("Lowercase"), "A\u00c4\u0130\u03a3", "a\u00e4i\u0307\u03c3"},
      {of_type("StripAccents"), "e\u0301a\u0903", "ea"},
      {of_type("Nmt"), "a\u0001b\u200bc\td\ufeff", "ab c d "},
      {of_type("ByteLevel"), " \u00e9", "\u0120\u00c3\u00a9"},
      {strip(true, true), " \u3000a b\n", "a b"},
      {strip(true, false), "  a ", "a "},
      {strip(false, true), "  a ", "  a"},
      {{{"type", "Prepend"}, {"prepend", "_"}}, "a", "_a"},
      {{{"type", "Prepend"}, {"prepend", "_"}}, "", ""},
      {replace("String", "..", "-"), "a...b", "a-.b"},
      {replace("Regex", " {2,}", "_"), "a  b c   ", "a_b c_"},
      {bert(true, true, nullptr, true), "\u00c9\u4e16a\u0001\tb\ufffd", "e \u4e16 a b"},
      {bert(true, false, false, false), "\u00c9\r\u00a0\u00ad", "\u00c9  "},
      {bert(false, false, true, false), "\u00c9\t", "E\t"},
  };
  for (const auto& [object, text, expected] : examples) {
    EXPECT_EQ(normalized(object, text), expected) << object.dump();
  }
}

TEST(ReadNormalizer, TakesStepsOneAfterTheOther) {
  const json inner = {{"type", "Sequence"},
                      {"normalizers", {of_type("Lowercase"), strip(true, true)}}};
  const json outer = {{"type", "Sequence"}, {"normalizers", {inner, replace("String", "a", "A")}}};
  EXPECT_EQ(normalized(outer, " BANANA "), "bAnAnA");
  EXPECT_EQ(read_normalizer(nullptr), nullptr);
}

TEST(ReadNormalizer, RefusesACharsmapThatIsNone) {
  const json cut_off = {{"type", "Precompiled"}, {"precompiled_charsmap", "//8="}};
  EXPECT_THROW(read_normalizer(cut_off), std::invalid_argument);
  const json no_base64 = {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}};
  EXPECT_THROW(read_normalizer(no_base64), std::invalid_argument);
}

// What stands for the first character of the document, which a Metaspace asks for.
TEST(ReadNormalizer, KnowsWhatStandsForTheFirstCharacter) {
  const auto at_start = [](const json& object, const std::string& text, size_t first = 1) {
    NormalizedText changed{.text = text, .at_start = first, .most_bytes = SIZE_MAX};
    read_normalizer(object)->apply(changed);
    return changed.at_start;
  };
  EXPECT_EQ(at_start({{"type", "Prepend"}, {"prepend", "__"}}, "ab"), 3);
  EXPECT_EQ(at_start(strip(true, true), " a"), 0);
  EXPECT_EQ(at_start(replace("String", "a", "xyz"), "ab"), 3);
  EXPECT_EQ(at_start(replace("String", "ab", "xyz"), "ab"), 0) << "it stands for b";
  EXPECT_EQ(at_start(of_type("Lowercase"), "Ab"), 1);
  EXPECT_EQ(at_start(of_type("NFKC"), "\u2496a", 3), 3) << "15.";
  EXPECT_EQ(at_start(of_type("NFC"), "e\u0301a"), 2) << "one character of two";
}

}  // namespace
}  // namespace phalanx
