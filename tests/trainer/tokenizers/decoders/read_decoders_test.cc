// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/decoders/read_decoders.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/tokenizers/word_tokenizer.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/streaming_decoder.h"
#include "trainer/tokenizers/tokenizer_json.h"

namespace phalanx {
namespace {

using nlohmann::json;

json of_type(const char* type) { return {{"type", type}}; }

json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json strip(const char* content, int start, int stop) {
  return {{"type", "Strip"}, {"content", content}, {"start", start}, {"stop", stop}};
}

struct Example {
  json decoder;
  std::vector<std::string> tokens;
  std::string expected;
};

// A tokenizer with these tokens, and their numbers.
std::pair<std::shared_ptr<const Tokenizer>, std::vector<int32_t>> made(
    const std::vector<std::string>& tokens, const json& decoder) {
  json file = word_json(tokens);
  file["decoder"] = decoder;
  std::vector<int32_t> numbers;
  for (const std::string& token : tokens) {
    numbers.push_back(file["model"]["vocab"][token].get<int32_t>());
  }
  return {parse_tokenizer_json(file.dump(), {}), numbers};
}

TEST(ReadDecoders, MakeTheSameTextAtOnceAndTokenByToken) {
  const json llama = {
      {"type", "Sequence"},
      {"decoders",
       {replace("_", " "), of_type("ByteFallback"), of_type("Fuse"), strip(" ", 1, 0)}}};
  const json both_ends = {{"type", "Sequence"}, {"decoders", {of_type("Fuse"), strip("a", 1, 2)}}};
  const json ctc = {
      {"type", "CTC"}, {"pad_token", "<pad>"}, {"word_delimiter_token", "|"}, {"cleanup", true}};
  const std::vector<Example> examples{
      {nullptr, {"a", "b"}, "a b"},
      {{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}},
       {"do", "##es", "n't", "."},
       "doesn't."},
      {{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}, {"##a", "."}, "##a ."},
      {{{"type", "Metaspace"}, {"replacement", "_"}}, {"_a_", "_b"}, "a b"},
      {{{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "never"}}, {"_a"}, " a"},
      {{{"type", "BPEDecoder"}, {"suffix", "</w>"}}, {"a", "b</w>", "c</w>"}, "ab c"},
      {of_type("ByteLevel"), {"\u00c3", "\u00a9\u0120", "\u4e16", "\u00c3"}, "\u00e9 \u4e16\ufffd"},
      {of_type("ByteFallback"),
       {"<0xC3>", "<0xA9>", "a", "<0xC3>", "<0xC3>"},
       "\u00e9a\ufffd\ufffd"},
      {llama, {"_a", "<0xE4>", "<0xB8>", "<0x96>", "__b"}, "a\u4e16  b"},
      {llama, {"__a"}, " a"},
      {both_ends, {"a", "ab", "aa", "a"}, "aba"},
      {strip("a", 1, 1), {"aba", "aab"}, "bab"},
      {ctc, {"h", "h", "<pad>", "h", "|", "i", " ", "!"}, "hh i !"},
      {replace("a", "-"), {"ab", "ca"}, "-bc-"},
  };
  for (const auto& [decoder, tokens, expected] : examples) {
    const auto [tokenizer, numbers] = made(tokens, decoder);
    EXPECT_EQ(decode(*tokenizer, numbers), expected) << decoder.dump();
    StreamingDecoder streaming(*tokenizer);
    std::string text;
    for (const int32_t number : numbers) text += streaming.add(number);
    EXPECT_EQ(text + streaming.finish(), expected) << decoder.dump();
  }
}

TEST(ReadDecoders, DoNotWaitForMoreThanACharacterNeeds) {
  const auto [tokenizer, numbers] = made({"\u00c3", "\u00a9"}, of_type("ByteLevel"));
  StreamingDecoder streaming(*tokenizer);
  EXPECT_EQ(streaming.add(numbers[0]), "");
  EXPECT_EQ(streaming.add(numbers[1]), "\u00e9");
}

// A real number that no integer holds may not be made one.
TEST(ReadDecoders, RefuseCountsThatAreNone) {
  for (const json& count : {json(1e97), json(1.5), json(-1), json("1")}) {
    json decoder = strip("a", 0, 0);
    decoder["start"] = count;
    EXPECT_THROW(made({"a"}, decoder), UserError) << count;
  }
}

}  // namespace
}  // namespace phalanx
