// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/pre_tokenizers/read_pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phalanx {
namespace {

using nlohmann::json;
using Pieces = std::vector<std::string>;

Pieces pieces(const json& object, const std::string& text, size_t at_start = 1) {
  Pieces found;
  read_pre_tokenizer(object)->cut({.text = text, .at_start = at_start},
                                  [&](const TextPiece& piece) { found.emplace_back(piece.text); });
  return found;
}

json of_type(const char* type) { return {{"type", type}}; }

json split(const json& pattern, const char* behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}

json metaspace(const char* scheme, bool splits) {
  return {
      {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", scheme}, {"split", splits}};
}

struct Example {
  json object;
  std::string text;
  Pieces expected;
};

TEST(ReadPreTokenizer, MakesEachKind) {
  const json dash = {{"String", "-"}};
  const std::vector<Example> examples{
      {of_type("BertPreTokenizer"), "Hey, you $5", {"Hey", ",", "you", "$", "5"}},
      {of_type("Whitespace"), "a_1 b-+c\u00e9", {"a_1", "b", "-+", "c\u00e9"}},
      {of_type("WhitespaceSplit"), " a-b \u3000c\n", {"a-b", "c"}},
      {{{"type", "Digits"}, {"individual_digits", true}}, "a12\u0663", {"a", "1", "2", "\u0663"}},
      {{{"type", "Digits"}, {"individual_digits", false}}, "a12b", {"a", "12", "b"}},
      {{{"type", "Punctuation"}}, "a.,b", {"a", ".", ",", "b"}},
      {{{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "a.,b", {"a", ".,", "b"}},
      {{{"type", "CharDelimiterSplit"}, {"delimiter", "|"}}, "a||b|", {"a", "b"}},
      {{{"type", "FixedLength"}, {"length", 2}}, "\u00e9bc", {"\u00e9b", "c"}},
      {of_type("UnicodeScripts"), " a\u3042\u30ab b", {"a", "\u3042\u30ab ", "b"}},
      {{{"type", "ByteLevel"}, {"add_prefix_space", true}}, "a b's", {"\u0120a", "\u0120b", "'s"}},
      {{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}},
       "a \u00e9",
       {"a\u0120\u00c3\u00a9"}},
      {split(dash, "Removed"), "-a--b", {"a", "b"}},
      {split(dash, "Isolated"), "a--b", {"a", "-", "-", "b"}},
      {split(dash, "Contiguous"), "a--b", {"a", "--", "b"}},
      {split(dash, "MergedWithPrevious"), "a--b", {"a-", "-", "b"}},
      {split(dash, "MergedWithNext"), "a--b-", {"a", "-", "-b", "-"}},
      {split({{"Regex", "\\w+"}}, "Removed", true), "a, b", {"a", "b"}},
      {split({{"String", ""}}, "Isolated"), "ab", {"a", "b"}},
  };
  for (const auto& [object, text, expected] : examples) {
    EXPECT_EQ(pieces(object, text), expected) << object.dump();
  }
}

TEST(ReadPreTokenizer, PutsTheSignOfAMetaspaceWhereItsSchemeSays) {
  EXPECT_EQ(pieces(metaspace("always", true), "a  b"), (Pieces{"_a", "_", "_b"}));
  EXPECT_EQ(pieces(metaspace("always", false), " a"), Pieces{"_a"});
  EXPECT_EQ(pieces(metaspace("never", true), "a b"), (Pieces{"a", "_b"}));
  EXPECT_EQ(pieces(metaspace("first", true), "a b"), (Pieces{"_a", "_b"}));
  EXPECT_EQ(pieces(metaspace("first", true), "a b", 0), (Pieces{"a", "_b"})) << "no beginning";
}

TEST(ReadPreTokenizer, CutsWhatTheStepBeforeLeft) {
  const json words = {{"type", "Sequence"},
                      {"pretokenizers", {of_type("WhitespaceSplit"), metaspace("first", true)}}};
  const json all = {{"type", "Sequence"},
                    {"pretokenizers", {words, {{"type", "Digits"}, {"individual_digits", true}}}}};
  EXPECT_EQ(pieces(all, "a1 b"), (Pieces{"_a", "1", "b"}));
  EXPECT_EQ(read_pre_tokenizer(nullptr), nullptr);
}

}  // namespace
}  // namespace phalanx
