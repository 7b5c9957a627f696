// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/character_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/trainer/tokenizers/small_character_bpe.h"
#include "tests/trainer/tokenizers/streamed.h"
#include "trainer/tokenizers/tokenizer_json.h"

namespace phalanx {
namespace {

using nlohmann::json;
using testing::ElementsAre;

constexpr int32_t kUnknown = 0;
constexpr int32_t kBytes = 3;
constexpr int32_t kSpace = 259;

json metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", "\u2581"},
          {"prepend_scheme", scheme},
          {"split", split}};
}

std::shared_ptr<const Tokenizer> tokenizer_of(const json& file) {
  return parse_tokenizer_json(file.dump(), {});
}

TEST(CharacterBpe, EncodesWordsAndBytes) {
  const auto tokenizer = tokenizer_of(small_character_json());
  EXPECT_THAT(encode(*tokenizer, "abc ade"), ElementsAre(267, 265, 263, 264));
  EXPECT_THAT(encode(*tokenizer, "  a"), ElementsAre(kSpace, kSpace, 265)) << "a space is added";
  EXPECT_THAT(encode(*tokenizer, "\u00e9"), ElementsAre(kSpace, kBytes + 0xC3, kBytes + 0xA9));
  EXPECT_THAT(encode(*tokenizer, ""), ElementsAre());
  EXPECT_EQ(encode(*tokenizer, "a\xFF"), encode(*tokenizer, "a\uFFFD"));
  EXPECT_EQ(tokenizer->vocabulary_size(), 268);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
}

TEST(CharacterBpe, TakesPartsBetweenAddedTokensAsTexts) {
  json file = small_character_json();
  file["added_tokens"].push_back({{"id", 268}, {"content", "dd"}, {"normalized", false}});
  const auto tokenizer = tokenizer_of(file);
  EXPECT_THAT(encode(*tokenizer, "abcdda"), ElementsAre(267, 268, 265));
  EXPECT_THAT(encode(*tokenizer, "a</s>a", SpecialText::token), ElementsAre(265, 2, 265));
  EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, "a</s>a")), "a</s>a") << "ordinary text";
}

TEST(CharacterBpe, MakesUnknownTokens) {
  json file = small_character_json();
  file["model"]["byte_fallback"] = false;
  EXPECT_THAT(encode(*tokenizer_of(file), "xyaz"), ElementsAre(kSpace, kUnknown, 260, kUnknown));
  file["model"]["fuse_unk"] = false;
  EXPECT_THAT(encode(*tokenizer_of(file), "xya"), ElementsAre(kSpace, kUnknown, kUnknown, 260));
}

TEST(CharacterBpe, PutsSpacesAsMetaspaceDoes) {
  json file = small_character_json();
  file["normalizer"] = nullptr;
  const std::string text = "a</s>a b";
  const auto tokens = [&](const char* scheme) {
    file["pre_tokenizer"] = metaspace(scheme, false);
    return encode(*tokenizer_of(file), text, SpecialText::token);
  };
  EXPECT_THAT(tokens("always"), ElementsAre(265, 2, 265, kSpace, 261));
  EXPECT_THAT(tokens("first"), ElementsAre(265, 2, 260, kSpace, 261));
  EXPECT_THAT(tokens("never"), ElementsAre(260, 2, 260, kSpace, 261));
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
  EXPECT_THAT(encode(*tokenizer_of(file), " a"), ElementsAre(265)) << "no second space";
}

TEST(CharacterBpe, SplitsWordsWhereAsked) {
  json file = small_character_json();
  file["normalizer"] = nullptr;
  file["model"]["vocab"]["\u2581\u2581"] = 268;
  file["model"]["merges"].push_back("\u2581 \u2581");
  file["pre_tokenizer"] = metaspace("never", false);
  EXPECT_THAT(encode(*tokenizer_of(file), "  b"), ElementsAre(268, 261));
  file["pre_tokenizer"] = metaspace("never", true);
  EXPECT_THAT(encode(*tokenizer_of(file), "  b"), ElementsAre(kSpace, kSpace, 261));
}

TEST(CharacterBpe, TakesWholePartsWhereMergesAreIgnored) {
  json file = small_character_json();
  file["model"]["vocab"]["\u2581de"] = 268;
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(*tokenizer_of(file), "de"), ElementsAre(268));
  EXPECT_THAT(encode(*tokenizer_of(file), "de a"), ElementsAre(kSpace, 263, 264, 265));
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = metaspace("always", true);
  EXPECT_THAT(encode(*tokenizer_of(file), "de a de"), ElementsAre(268, 265, 268));
  file["pre_tokenizer"] = metaspace("never", true);
  EXPECT_GT(encode(*tokenizer_of(file), "</s>").size(), 1) << "ordinary text ends no document";
}

TEST(CharacterBpe, DecodesRunsOfBytes) {
  const auto tokenizer = tokenizer_of(small_character_json());
  const int32_t first = kBytes + 0xC3;
  const int32_t second = kBytes + 0xA9;
  EXPECT_EQ(decode(*tokenizer, std::vector{first, second, 260}), "\u00e9a");
  EXPECT_EQ(decode(*tokenizer, std::vector{first, second, first, 260}), "\uFFFD\uFFFD\uFFFDa");
  EXPECT_EQ(decode(*tokenizer, std::vector{260, first}), "a\uFFFD");
}

TEST(CharacterBpe, LeavesOutTheSpaceThatItAdded) {
  json file = small_character_json();
  const std::vector<int32_t> tokens{kSpace, kSpace, 265, 5000};
  EXPECT_EQ(decode(*tokenizer_of(file), tokens), "  a\uFFFD");
  file["decoder"]["decoders"].erase(3);
  EXPECT_EQ(decode(*tokenizer_of(file), tokens), "   a\uFFFD");
  file["normalizer"] = nullptr;
  file["decoder"] = metaspace("always", true);
  EXPECT_EQ(decode(*tokenizer_of(file), tokens), "  a\uFFFD");
  file["decoder"] = metaspace("never", true);
  EXPECT_EQ(decode(*tokenizer_of(file), tokens), "   a\uFFFD");
}

// A tokenizer with random merges over "▁", a, b and c. One text more, of which no merge makes use,
// keeps words together.
json random_merges(std::mt19937& random) {
  json file = small_character_json();
  json& model = file["model"];
  std::vector<std::string> texts{"\u2581", "a", "b", "c"};
  model["merges"] = json::array();
  for (const std::string text : {"\u2581a", "bc", "\u2581abc"}) model["vocab"].erase(text);
  int32_t next = 265;
  for (int attempt = 0; attempt < 60; ++attempt) {
    std::uniform_int_distribution<size_t> any(0, texts.size() - 1);
    const std::string left = texts[any(random)];
    const std::string right = texts[any(random)];
    const bool is_word = left.ends_with("\u2581") || right.find("\u2581") == std::string::npos;
    if (!is_word || left.size() + right.size() > 15 || model["vocab"].contains(left + right)) {
      continue;
    }
    model["merges"].push_back({left, right});
    model["vocab"][left + right] = next++;
    texts.push_back(left + right);
  }
  return file;
}

TEST(CharacterBpe, MakesTheSameTokensOfWordsAsOfTheWholeText) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    json file = random_merges(random);
    file["model"]["byte_fallback"] = round % 2 == 0;
    const auto by_words = tokenizer_of(file);
    file["model"]["vocab"]["d\u2581"] = by_words->vocabulary_size();
    const auto as_one = tokenizer_of(file);
    std::discrete_distribution<size_t> any{3, 3, 3, 3, 1, 1};
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (int length = 0; length < 90; ++length) {
        text += std::vector{" ", "a", "b", "c", "\u2581", "z"}[any(random)];
      }
      EXPECT_EQ(encode(*by_words, text), encode(*as_one, text)) << text;
    }
  }
}

TEST(CharacterBpe, DecodesTheSameTokenByToken) {
  std::mt19937 random(4);
  json file = small_character_json();
  for (const bool has_metaspace : {false, true}) {
    if (has_metaspace) file["decoder"] = metaspace("always", true);
    expect_streamed(*tokenizer_of(file), random);
  }
}

}  // namespace
}  // namespace phalanx
