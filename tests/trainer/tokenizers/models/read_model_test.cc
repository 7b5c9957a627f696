// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/read_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using nlohmann::json;
using testing::ElementsAre;

json vocabulary(const std::vector<std::string>& texts) {
  json object = json::object();
  for (const std::string& text : texts) object.emplace(text, object.size());
  return object;
}

json bpe(const std::vector<std::string>& texts, const json& merges) {
  return {{"type", "BPE"}, {"unk_token", "?"}, {"vocab", vocabulary(texts)}, {"merges", merges}};
}

std::vector<int32_t> tokens(const json& object, const std::string& piece,
                            const ModelContext& context = {}) {
  const auto model = read_model(object, context);
  std::vector<int32_t> once;
  model->encode(piece, once);
  std::vector<int32_t> again;
  model->encode(piece, again);
  EXPECT_EQ(once, again) << "remembered";
  return once;
}

TEST(ReadModel, MakesWordLevel) {
  const json object = {
      {"type", "WordLevel"}, {"vocab", vocabulary({"?", "a", "<s>"})}, {"unk_token", "?"}};
  EXPECT_THAT(tokens(object, "a"), ElementsAre(1));
  EXPECT_THAT(tokens(object, "b"), ElementsAre(0));
  EXPECT_THAT(tokens(object, "<s>"), ElementsAre(2));
  EXPECT_THAT(tokens(object, "<s>", {.hidden = {"<s>"}}), ElementsAre(0)) << "no special token";
}

TEST(ReadModel, MakesWordPiece) {
  json object = {{"type", "WordPiece"},
                 {"vocab", vocabulary({"?", "a", "ab", "##c", "##cd", "##\u00e9"})},
                 {"unk_token", "?"},
                 {"continuing_subword_prefix", "##"},
                 {"max_input_chars_per_word", 5}};
  EXPECT_THAT(tokens(object, "abcd"), ElementsAre(2, 4));
  EXPECT_THAT(tokens(object, "acc\u00e9"), ElementsAre(1, 3, 3, 5));
  EXPECT_THAT(tokens(object, "abd"), ElementsAre(0)) << "the rest is unknown, so all of it is";
  EXPECT_THAT(tokens(object, "accccc"), ElementsAre(0)) << "too long";
  object["unk_token"] = "!";
  EXPECT_THROW(read_model(object, {}), std::invalid_argument);
}

TEST(ReadModel, MakesBpe) {
  const std::vector<std::string> texts{"?", "a", "b", "ab", "abb", "<0xC3>", "<0xA9>"};
  json object = bpe(texts, {"a b", "ab b"});
  EXPECT_THAT(tokens(object, "abba"), ElementsAre(4, 1));
  EXPECT_THAT(tokens(object, "xya"), ElementsAre(0, 0, 1));
  object["fuse_unk"] = true;
  EXPECT_THAT(tokens(object, "xya"), ElementsAre(0, 1));
  object["byte_fallback"] = true;
  EXPECT_THAT(tokens(object, "\u00e9a"), ElementsAre(5, 6, 1));
  EXPECT_THAT(tokens(object, "x\u00e9a"), ElementsAre(5, 6, 0, 1)) << "as in the package";
  object["merges"] = json::array();
  EXPECT_THAT(tokens(object, "ab"), ElementsAre(1, 2));
  object["ignore_merges"] = true;
  EXPECT_THAT(tokens(object, "ab"), ElementsAre(3));
  EXPECT_THAT(tokens(object, "ab", {.hidden = {"ab"}}), ElementsAre(1, 2));
}

TEST(ReadModel, PutsWhatBpeSaysBeforeAndBehindTheCharactersOfAWord) {
  json object = bpe({"?", "a", "#b", "#b>", "a>", "ab>"}, {"a #b>"});
  object["continuing_subword_prefix"] = "#";
  object["end_of_word_suffix"] = ">";
  EXPECT_THAT(tokens(object, "a"), ElementsAre(4));
  EXPECT_THAT(tokens(object, "ab"), ElementsAre(5));
  EXPECT_THAT(tokens(object, "abb"), ElementsAre(1, 2, 3));
}

TEST(ReadModel, CutsLongPiecesOfBpeOnlyWhereNoTokenLiesAcross) {
  const std::string sign = "\u2581";
  std::vector<std::string> texts{"?", sign, "a", sign + "a", sign + sign};
  const json merges = {sign + " a", sign + " " + sign};
  EXPECT_THAT(tokens(bpe(texts, merges), "a" + sign + "a" + sign + sign + "a"),
              ElementsAre(2, 3, 1, 3));
  texts.push_back("a" + sign);
  const json across = {"a " + sign, sign + " a"};
  EXPECT_THAT(tokens(bpe(texts, across), "a" + sign + "a"), ElementsAre(5, 2));
}

TEST(ReadModel, RefusesBpeThatLosesCharacters) {
  json object = bpe({"a"}, json::array());
  object["unk_token"] = nullptr;
  EXPECT_THROW(read_model(object, {}), UserError);
  EXPECT_THROW(read_model(object, {.hidden = {}, .is_byte_level = true}), UserError);
  object["unk_token"] = "?";
  EXPECT_THROW(read_model(object, {}), std::invalid_argument) << "the vocabulary lacks it";
}

json unigram(const std::vector<std::pair<std::string, double>>& entries) {
  return {{"type", "Unigram"}, {"unk_id", 0U}, {"vocab", entries}};
}

TEST(ReadModel, MakesUnigram) {
  json object = unigram({{"<unk>", 0.0}, {"a", -1.0}, {"b", -1.5}, {"ab", -2.0}, {"abc", -9.0}});
  EXPECT_THAT(tokens(object, "ab"), ElementsAre(3)) << "-2 against -2.5";
  EXPECT_THAT(tokens(object, "abcc"), ElementsAre(4, 0)) << "fewer unknown characters";
  EXPECT_THAT(tokens(object, "axyb"), ElementsAre(1, 0, 2)) << "a run is one";
  EXPECT_THAT(tokens(object, "ab", {.hidden = {"ab"}}), ElementsAre(1, 2));
  object["unk_id"] = 9U;
  EXPECT_THROW(read_model(object, {}), std::invalid_argument);
  object["unk_id"] = nullptr;
  EXPECT_THROW(read_model(object, {}), std::invalid_argument);
}

TEST(ReadModel, GivesBytesOfWhatAUnigramModelDoesNotKnow) {
  json object = unigram({{"<unk>", 0.0}, {"a", -1.0}, {"<0xC3>", -1.0}, {"<0xA9>", -1.0}});
  EXPECT_THAT(tokens(object, "a\u00e9"), ElementsAre(1, 0));
  object["byte_fallback"] = true;
  EXPECT_THAT(tokens(object, "a\u00e9"), ElementsAre(1, 2, 3));
  EXPECT_THAT(tokens(object, "a\u00e8"), ElementsAre(1, 0)) << "one byte has no token";
}

}  // namespace
}  // namespace phalanx
