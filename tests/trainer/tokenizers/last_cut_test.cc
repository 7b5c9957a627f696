// SPDX-License-Identifier: Apache-2.0
// Tokenizer::last_cut: texts that are cut there have the tokens of the whole.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/tokenizers/small_bpe.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/character_tokenizer.h"
#include "trainer/tokenizers/tokenizer_json.h"

namespace phalanx {
namespace {

using nlohmann::json;

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";

// Bits of text that words, spaces and cuts are made of, and bytes that are no UTF-8.
std::string random_text(std::mt19937& random, int bits) {
  static const std::vector<std::string> kBits{"he",     "hell",   "hello",    " w",
                                              "llo",    "x",      "I",        "'s",
                                              "'ll",    "'LL",    "1",        "23",
                                              "456",    ".",      ",",        "!?",
                                              "\"",     " ",      " ",        "  ",
                                              "\n",     "\n\n",   "\r\n",     "\t",
                                              "\u00a0", "\u3000", "\u00fc",   "\u0416",
                                              "\u0438", "\u3042", "\u30ab",   "\u4e16",
                                              "\u754c", "\u3002", "\uff0c",   "\uac00",
                                              "\u0301", "\u0928", "\u093f",   "<|endoftext|>",
                                              "<code>", "\x80",   "\xE4\xB8", "\xF0\x9F\x98\x80",
                                              "\u1100", "\u1161", "\u11a8",   "\u3099",
                                              "\u0439", "\ufb01", "\u037e",   "\u1ec7"};
  std::string text;
  for (int i = 0; i < bits; ++i) text += kBits[random() % kBits.size()];
  return text;
}

// How many of the texts could be cut.
int check(const Tokenizer& tokenizer, int texts) {
  std::mt19937 random(3);
  int cuts = 0;
  for (int i = 0; i < texts; ++i) {
    const std::string whole = random_text(random, 1 + static_cast<int>(random() % 24));
    const std::vector<int32_t> expected = encode(tokenizer, whole);
    // What follows is not shown to the tokenizer.
    const size_t shown = 1 + random() % whole.size();
    const size_t cut = tokenizer.last_cut(std::string_view(whole).substr(0, shown));
    EXPECT_LE(cut, shown);
    if (cut == 0) continue;
    ++cuts;
    std::vector<int32_t> parts = encode(tokenizer, whole.substr(0, cut));
    tokenizer.encode(whole.substr(cut), SpecialText::ordinary, parts);
    EXPECT_EQ(parts, expected) << "at " << cut << " of " << shown << ": " << whole;
    if (parts != expected) break;
  }
  return cuts;
}

std::shared_ptr<const Tokenizer> bpe_of(const json& file) {
  return parse_tokenizer_json(file.dump(), std::nullopt);
}

json with_pattern(std::string_view pattern) {
  json file = small_tokenizer_json();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern", {{"Regex", pattern}}},
         {"behavior", "Isolated"},
         {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  return file;
}

json with_added(json file, const char* text) {
  json added = file["added_tokens"][0];
  added["id"] = 262;
  added["content"] = text;
  added["special"] = false;
  file["added_tokens"].push_back(added);
  return file;
}

json with_normalizer(json file, const json& normalizer) {
  file["normalizer"] = normalizer;
  return file;
}

// SmolLM's and StarCoder's: digits, then the words of GPT-2.
json with_digits(json file) {
  const json words = file["pre_tokenizer"];
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, words}}};
  return file;
}

TEST(LastCut, OfBytesIsTheEndOfTheLastCharacter) {
  EXPECT_GT(check(ByteTokenizer(), 3000), 2800);
  EXPECT_EQ(ByteTokenizer().last_cut("ab\xE4\xB8"), 2);
  EXPECT_EQ(ByteTokenizer().last_cut("\xE4"), 0);
}

TEST(LastCut, OfCharactersIsTheSame) {
  std::mt19937 random(5);
  const std::string all = repaired_utf8(random_text(random, 3000));
  EXPECT_GT(check(CharacterTokenizer(all), 3000), 2800);
}

TEST(LastCut, OfByteLevelBpeIsBetweenWords) {
  EXPECT_GT(check(*bpe_of(small_tokenizer_json()), 20'000), 4000);
  for (const std::string_view pattern : {kLlama3, kQwen2, kGpt4o}) {
    EXPECT_GT(check(*bpe_of(with_pattern(pattern)), 20'000), 4000) << pattern;
  }
  EXPECT_EQ(bpe_of(small_tokenizer_json())->last_cut("hello world  and"), 11);
}

TEST(LastCut, CountsWithASpaceThatIsPutBefore) {
  json file = small_tokenizer_json();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_GT(check(*bpe_of(file), 20'000), 2000);
}

TEST(LastCut, IsInNoAddedToken) {
  for (const char* text : {"<code>", "o w", "x\n", "hello  he"}) {
    EXPECT_GT(check(*bpe_of(with_added(small_tokenizer_json(), text)), 20'000), 1000) << text;
  }
}

TEST(LastCut, OfQwen2IsBetweenWordsOfTheNormalForm) {
  const json nfc = {{"type", "NFC"}};
  EXPECT_GT(check(*bpe_of(with_normalizer(with_pattern(kQwen2), nfc)), 20'000), 1500);
  const json in_sequence = {{"type", "Sequence"}, {"normalizers", {nfc}}};
  EXPECT_GT(check(*bpe_of(with_normalizer(small_tokenizer_json(), in_sequence)), 20'000), 1500);
}

TEST(LastCut, IsBetweenWordsBehindDigits) {
  EXPECT_GT(check(*bpe_of(with_digits(small_tokenizer_json())), 20'000), 1500);
}

TEST(LastCut, TouchesNoAddedTokenThatTakesSpaces) {
  for (const char* text : {"<code>", "o w", "x\n", "hello  he"}) {
    json file = with_added(with_digits(small_tokenizer_json()), text);
    json& added = file["added_tokens"].back();
    added["normalized"] = false;
    added["lstrip"] = true;
    added["rstrip"] = true;
    EXPECT_GT(check(*bpe_of(file), 20'000), 500) << text;
    added["single_word"] = true;
    EXPECT_GT(check(*bpe_of(file), 20'000), 500) << text;
  }
}

TEST(LastCut, IsNotKnownWhereANormalizerTakesLettersApart) {
  const std::string text = "hello world and more";
  for (const char* name : {"NFD", "NFKD", "NFKC", "Lowercase"}) {
    const auto file = with_normalizer(with_pattern(kQwen2), {{"type", name}});
    EXPECT_EQ(bpe_of(file)->last_cut(text), 0) << name;
  }
}

TEST(LastCut, IsNotKnownForOtherPatterns) {
  EXPECT_EQ(bpe_of(with_pattern(R"(.+?h|.)"))->last_cut("hello world and more"), 0);
}

}  // namespace
}  // namespace phalanx
