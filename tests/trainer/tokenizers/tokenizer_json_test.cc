// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/trainer/tokenizers/small_bpe.h"
#include "tests/trainer/tokenizers/small_character_bpe.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Tokenizer> tokenizer_of(const json& file) {
  return parse_tokenizer_json(file.dump(), {});
}

std::string error_of(const std::string& text, const std::optional<std::string>& end = {}) {
  try {
    parse_tokenizer_json(text, end);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(TokenizerJson, MakesByteLevelBpe) {
  const auto tokenizer = tokenizer_of(small_tokenizer_json());
  EXPECT_THAT(encode(*tokenizer, "hello w!"), ElementsAre(259, 260, '!'));
  EXPECT_THAT(encode(*tokenizer, "shell"), ElementsAre('s', 258));
  EXPECT_THAT(encode(*tokenizer, "\u00e9"), ElementsAre(0xC3, 0xA9));
  EXPECT_EQ(tokenizer->vocabulary_size(), 262);
  EXPECT_EQ(tokenizer->end_of_text(), 261);
}

TEST(TokenizerJson, TakesSpecialTextAsTokenWhereAsked) {
  const auto tokenizer = tokenizer_of(small_tokenizer_json());
  const std::string text = "he<|endoftext|>he";
  EXPECT_THAT(encode(*tokenizer, text, SpecialText::token), ElementsAre(256, 261, 256));
  EXPECT_GT(encode(*tokenizer, text).size(), 3);
  EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text)), text);
  EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text, SpecialText::token)), text);
}

TEST(TokenizerJson, AlwaysFindsAddedTokensThatAreNotSpecial) {
  json file = small_tokenizer_json();
  file["added_tokens"].push_back({{"id", 262}, {"content", "ello"}});
  file["added_tokens"].push_back({{"id", 263}, {"content", "ell"}});
  EXPECT_THAT(encode(*tokenizer_of(file), "hello"), ElementsAre('h', 262)) << "the longest";
}

TEST(TokenizerJson, TakesMergesInBothForms) {
  json file = small_tokenizer_json();
  json pairs = json::array();
  for (const auto& merge : file["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const size_t space = text.find(' ');
    pairs.push_back({text.substr(0, space), text.substr(space + 1)});
  }
  file["model"]["merges"] = pairs;
  EXPECT_THAT(encode(*tokenizer_of(file), "hello"), ElementsAre(259));
}

TEST(TokenizerJson, TakesWholeWordsWhereMergesAreIgnored) {
  json file = small_tokenizer_json();
  file["model"]["vocab"]["xyz"] = 262;
  EXPECT_THAT(encode(*tokenizer_of(file), "xyz"), ElementsAre('x', 'y', 'z'));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(*tokenizer_of(file), "xyz"), ElementsAre(262));
}

TEST(TokenizerJson, CutsBySeveralSplits) {
  json file = small_tokenizer_json();
  const auto split = [](const char* pattern, const char* behavior, bool invert) {
    return json{{"type", "Split"},
                {"pattern", {{"Regex", pattern}}},
                {"behavior", behavior},
                {"invert", invert}};
  };
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {split("l", "Isolated", false),
        split("o", "Removed", false),
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  EXPECT_THAT(encode(*tokenizer_of(file), "hello"), ElementsAre(256, 'l', 'l'));
  file["pre_tokenizer"]["pretokenizers"][1] = split("[a-k]+", "Removed", true);
  EXPECT_THAT(encode(*tokenizer_of(file), "hello"), ElementsAre(256));
}

TEST(TokenizerJson, AddsASpaceWhereAsked) {
  json file = small_tokenizer_json();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(encode(*tokenizer_of(file), "w"), ElementsAre(260));
  EXPECT_THAT(encode(*tokenizer_of(file), " w"), ElementsAre(260));
  EXPECT_THAT(encode(*tokenizer_of(file), ""), ElementsAre());
}

TEST(TokenizerJson, ReadsWhatIsNoUtf8AsReplacement) {
  const auto tokenizer = tokenizer_of(small_tokenizer_json());
  EXPECT_EQ(encode(*tokenizer, "a\xFF"), encode(*tokenizer, "a\uFFFD"));
}

TEST(TokenizerJson, ShowsTokensBeyondTheVocabulary) {
  const auto tokenizer = tokenizer_of(small_tokenizer_json());
  EXPECT_EQ(decode(*tokenizer, std::vector<int32_t>{'a', 5000, -1, 'b'}), "a\uFFFD\uFFFDb");
}

TEST(TokenizerJson, TakesTheEndOfTextThatTheConfigNames) {
  json file = small_tokenizer_json();
  file["added_tokens"].push_back({{"id", 262}, {"content", "<end>"}, {"special", true}});
  EXPECT_EQ(parse_tokenizer_json(file.dump(), "<end>")->end_of_text(), 262);
  // An ordinary token may end a text, too.
  EXPECT_EQ(parse_tokenizer_json(file.dump(), "hello")->end_of_text(), 259);
  EXPECT_THAT(error_of(file.dump(), "<stop>"), HasSubstr("'<stop>'"));
  EXPECT_EQ(end_of_text_of_config(R"({"eos_token": "<end>"})"), "<end>");
  EXPECT_EQ(end_of_text_of_config(R"({"eos_token": {"content": "<end>"}})"), "<end>");
  EXPECT_EQ(end_of_text_of_config(R"({"eos_token": null})"), std::nullopt);
}

struct Change {
  const char* what;
  std::function<void(json&)> change;
  const char* message;
};

TEST(TokenizerJson, RefusesByNameWhatItDoesNotKnow) {
  const std::vector<Change> changes{
      {"normalizer",
       [](json& f) {
         f["normalizer"] = {{"type", "Uppercase"}};
       },
       "the normalizer Uppercase"},
      {"in a sequence",
       [](json& f) {
         f["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Uppercase"}}}}};
       },
       "the normalizer Uppercase"},
      {"pre-tokenizer", [](json& f) { f["pre_tokenizer"]["type"] = "Words"; },
       "the pre-tokenizer Words"},
      {"model", [](json& f) { f["model"]["type"] = "Bytes"; }, "the model Bytes"},
      {"option", [](json& f) { f["model"]["dropout"] = 0.1; }, "the option dropout"},
      {"decoder", [](json& f) { f["decoder"]["type"] = "Join"; }, "the decoder Join"},
      {"scheme",
       [](json& f) {
         f["decoder"] = {
             {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "last"}};
       },
       "the prepend_scheme last"},
      {"an empty match",
       [](json& f) {
         f["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "a*"}}}, {"content", "b"}};
       },
       "matches an empty text"},
      {"pattern",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers",
                                {{{"type", "Split"},
                                  {"pattern", {{"Regex", "\\X"}}},
                                  {"behavior", "Isolated"},
                                  {"invert", false}},
                                 {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}};
       },
       "'\\X'"},
  };
  for (const Change& change : changes) {
    json file = small_tokenizer_json();
    change.change(file);
    EXPECT_THAT(error_of(file.dump()), HasSubstr(change.message)) << change.what;
    EXPECT_THAT(error_of(file.dump()), HasSubstr("not supported")) << change.what;
  }
}

TEST(TokenizerJson, RefusesBpeOfCharactersThatIsBroken) {
  const std::vector<Change> changes{
      {"no unknown token", [](json& f) { f["model"]["unk_token"] = "<no>"; }, "'<no>'"},
      {"lost characters",
       [](json& f) {
         f["model"]["unk_token"] = nullptr;
         f["model"]["byte_fallback"] = false;
       },
       "would be lost"},
      {"a merge of no token", [](json& f) { f["model"]["merges"].push_back("a zz"); }, "'zz'"},
      {"two numbers", [](json& f) { f["added_tokens"][2]["id"] = 268; }, "'</s>' is 268, but 2 in"},
  };
  for (const Change& change : changes) {
    json file = small_character_json();
    change.change(file);
    EXPECT_THAT(error_of(file.dump()), HasSubstr(change.message)) << change.what;
  }
}

TEST(TokenizerJson, TakesWhatIsOfNoFormThatHasATokenizerOfItsOwn) {
  json file = small_tokenizer_json();
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(encode(*tokenizer_of(file), "hello e\u0301"), ElementsAre(259, ' ', 0xC3, 0xA9));
  EXPECT_EQ(tokenizer_of(file)->end_of_text(), 261);
  file = small_tokenizer_json();
  file["model"]["vocab"]["\u20ac"] = 261;  // Stands for no byte.
  file["added_tokens"][0]["id"] = 262;
  EXPECT_THAT(encode(*tokenizer_of(file), "hello"), ElementsAre(259));
  file = small_character_json();
  file["model"]["vocab"].erase("<0x41>");
  EXPECT_THAT(encode(*tokenizer_of(file), "A"), ElementsAre(259, 0)) << "an unknown token";
}

TEST(TokenizerJson, GivesAPairOfMergesItsLastRank) {
  json file = small_tokenizer_json();
  file["model"]["vocab"]["el"] = 262;
  file["model"]["merges"] = {"h e", "e l", "h e"};
  EXPECT_THAT(encode(*tokenizer_of(file), "hel"), ElementsAre('h', 262));
}

TEST(TokenizerJson, TakesGemmasSplit) {
  json file = small_character_json();
  file["normalizer"] = file["normalizer"]["normalizers"][1];
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"String", " "}}},
                           {"behavior", "MergedWithPrevious"},
                           {"invert", false}};
  EXPECT_THAT(encode(*tokenizer_of(file), "a abc"), ElementsAre(260, 267));
}

TEST(TokenizerJson, RefusesWhatIsBroken) {
  const std::vector<Change> changes{
      {"a merge of no token", [](json& f) { f["model"]["merges"].push_back("q zz"); }, "'zz'"},
      {"a merge into no token", [](json& f) { f["model"]["merges"].push_back("q z"); }, "'qz'"},
      {"no merge", [](json& f) { f["model"]["merges"].push_back("qz"); }, "'qz' is no merge"},
      {"a token twice", [](json& f) { f["model"]["vocab"]["qz"] = 65; }, "the token 65"},
      {"a negative token", [](json& f) { f["model"]["vocab"]["qz"] = -1; }, "-1"},
      {"a huge token", [](json& f) { f["model"]["vocab"]["qz"] = 1LL << 40; }, "1099511627776"},
      {"a token of text", [](json& f) { f["model"]["vocab"]["qz"] = "1"; }, "\"1\""},
      {"a byte less", [](json& f) { f["model"]["vocab"].erase("A"); }, "0x41"},
      {"no vocabulary", [](json& f) { f["model"].erase("vocab"); }, "model: "},
      {"no model", [](json& f) { f.erase("model"); }, "model"},
      {"a number", [](json& f) { f["model"] = 1; }, "model: it must be an object, but is number"},
      {"a pattern",
       [](json& f) {
         f["pre_tokenizer"] = {
             {"type", "Sequence"},
             {"pretokenizers",
              {{{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}},
               {{"type", "ByteLevel"}}}}};
       },
       "(a"},
  };
  for (const Change& change : changes) {
    json file = small_tokenizer_json();
    change.change(file);
    EXPECT_THAT(error_of(file.dump()), HasSubstr(change.message)) << change.what;
  }
  EXPECT_THAT(error_of("{\"model\": "), HasSubstr("no JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("no JSON object"));
}

}  // namespace
}  // namespace phalanx
