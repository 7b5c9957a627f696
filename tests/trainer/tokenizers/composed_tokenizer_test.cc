// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/composed_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/trainer/tokenizers/streamed.h"
#include "tests/trainer/tokenizers/word_tokenizer.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/tokenizer_json.h"

namespace phalanx {
namespace {

using nlohmann::json;
using testing::ElementsAre;

// "[UNK]" is 0, "a" 1, "b" 2, and the added tokens follow.
std::shared_ptr<const Tokenizer> with_added(const json& options, const json& normalizer = nullptr) {
  json file = word_json({"a", "b"});
  json added = {{"id", 3}, {"content", "<x>"}};
  if (!options.is_null()) added.update(options);
  file["added_tokens"].push_back(added);
  file["normalizer"] = normalizer;
  return parse_tokenizer_json(file.dump(), {});
}

TEST(ComposedTokenizer, FindsAddedTokens) {
  const auto tokenizer = with_added({});
  EXPECT_THAT(encode(*tokenizer, "a <x>b<x>"), ElementsAre(1, 3, 2, 3));
  EXPECT_EQ(decode(*tokenizer, std::vector<int32_t>{1, 3, 9}), "a <x> \ufffd");
  EXPECT_EQ(tokenizer->vocabulary_size(), 4);
  EXPECT_THAT(encode(*tokenizer, ""), ElementsAre());
  EXPECT_THAT(encode(*tokenizer, "\xff"), ElementsAre(0));
}

TEST(ComposedTokenizer, FindsSpecialTokensWhereAsked) {
  const auto tokenizer = with_added({{"special", true}});
  EXPECT_THAT(encode(*tokenizer, "a <x>", SpecialText::token), ElementsAre(1, 3));
  EXPECT_THAT(encode(*tokenizer, "a <x>"), ElementsAre(1, 0));
}

TEST(ComposedTokenizer, TakesTheSpaceBesideATokenThatAsksForIt) {
  const json tabs = {{"type", "Replace"}, {"pattern", {{"String", "\t"}}}, {"content", " a "}};
  EXPECT_THAT(encode(*with_added({}, tabs), "b\t<x>\tb"), ElementsAre(2, 1, 3, 1, 2));
  EXPECT_THAT(encode(*with_added({{"lstrip", true}, {"normalized", false}}, tabs), "b\t<x>\tb"),
              ElementsAre(2, 3, 1, 2));
  EXPECT_THAT(encode(*with_added({{"rstrip", true}, {"normalized", false}}, tabs), "b\t<x>\tb"),
              ElementsAre(2, 1, 3, 2));
}

TEST(ComposedTokenizer, LeavesATokenWithinAWordThatMustBeAWord) {
  json file = word_json({"a"});
  file["added_tokens"].push_back({{"id", 2}, {"content", "xy"}, {"single_word", true}});
  const auto tokenizer = parse_tokenizer_json(file.dump(), {});
  EXPECT_THAT(encode(*tokenizer, "xy axy xya -xy-"), ElementsAre(2, 0, 0, 0, 2, 0));
}

TEST(ComposedTokenizer, LooksForNormalizedTokensInTheNormalizedText) {
  const json lower = {{"type", "Lowercase"}};
  EXPECT_THAT(encode(*with_added({{"content", "<X>"}, {"normalized", true}}, lower), "A<x><X>"),
              ElementsAre(1, 3, 3));
  EXPECT_THAT(encode(*with_added({{"content", "<X>"}, {"normalized", false}}, lower), "A<X> <x>"),
              ElementsAre(1, 3, 0));
}

TEST(ComposedTokenizer, PutsASignOnlyWhereTheDocumentBegins) {
  json file = word_json({"_a", "a"});
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
  file["added_tokens"].push_back({{"id", 3}, {"content", "<x>"}});
  const auto tokenizer = parse_tokenizer_json(file.dump(), {});
  EXPECT_THAT(encode(*tokenizer, "a<x>a"), ElementsAre(1, 3, 2));
}

TEST(ComposedTokenizer, RefusesAddedTokensThatThePackageNumbersAnotherWay) {
  EXPECT_THROW(with_added({{"id", 5}}), UserError);
  EXPECT_THROW(with_added({{"content", "a"}}), UserError);
  EXPECT_THROW(with_added({{"content", ""}}), UserError);
  json file = word_json({"a"});
  file["normalizer"] = {{"type", "Lowercase"}};
  file["added_tokens"] = {{{"id", 2}, {"content", "X"}}, {{"id", 3}, {"content", "x"}}};
  EXPECT_THROW(parse_tokenizer_json(file.dump(), {}), UserError) << "which of them?";
}

TEST(ComposedTokenizer, EndsWhereANormalizerMakesATextFarLonger) {
  json steps = json::array();
  for (int i = 0; i < 40; ++i) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "c"}}}, {"content", "cccccccc"}});
  }
  const auto tokenizer = with_added({}, {{"type", "Sequence"}, {"normalizers", steps}});
  EXPECT_THAT(encode(*tokenizer, "a b"), ElementsAre(1, 2));
  EXPECT_THROW(encode(*tokenizer, "c"), UserError);
}

TEST(ComposedTokenizer, DecodesTokenByToken) {
  json file = word_json({"_a", "<0xC3>", "<0xA9>", "b"});
  file["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "ByteFallback"}},
                       {{"type", "Metaspace"}, {"replacement", "_"}},
                       {{"type", "Fuse"}}}}};
  std::mt19937 random(1);
  expect_streamed(*parse_tokenizer_json(file.dump(), {}), random);
}

}  // namespace
}  // namespace phalanx
