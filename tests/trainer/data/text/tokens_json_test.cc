// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokens_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/data/text/tokenize.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json description() {
  return {{"format", "nanogpt"},   {"bytes_per_token", 2},      {"end_of_text", 7},
          {"documents", 5},        {"validation_documents", 1}, {"tokens", 50},
          {"validation_tokens", 9}};
}

class TokensJsonFile : public testing::Test {
 protected:
  TokensJson read(const json& content) {
    return read_tokens_json(folder_.write("tokens.json", content.dump()));
  }

  TextFolder folder_;
};

TEST_F(TokensJsonFile, CountsWhatIsStored) {
  const TokensJson with_ends = read(description());
  EXPECT_EQ(with_ends.training_tokens, 45);
  EXPECT_EQ(with_ends.validation_tokens, 10);
  EXPECT_EQ(with_ends.end_of_text, 7);
  json without = description();
  without["end_of_text"] = nullptr;
  EXPECT_EQ(read(without).training_tokens, 41);
}

TEST_F(TokensJsonFile, IsRefusedWhereItCannotBe) {
  const std::pair<const char*, json> wrongs[] = {
      {"format", "npz"}, {"format", 3},    {"bytes_per_token", 3},        {"end_of_text", -1},
      {"tokens", -1},    {"tokens", 1e30}, {"tokens", uint64_t{1} << 60}, {"tokens", 1}};
  for (const auto& [name, value] : wrongs) {
    json content = description();
    content[name] = value;
    try {
      read(content);
      ADD_FAILURE() << content;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("tokens.json' is broken"), HasSubstr("again")));
    }
  }
}

TEST_F(TokensJsonFile, ShowsWhetherTokensAreMissing) {
  const fs::path output = folder_.path() / "tokens";
  for (const auto format :
       {TokenFileFormat::llmc, TokenFileFormat::nanogpt, TokenFileFormat::megatron}) {
    const TokenizeOptions options{.files = {folder_.write("text", std::string(1000, 'a'))},
                                  .format = format,
                                  .file_tokens = 300};
    ByteProgress progress;
    tokenize(character_tokenizer("abc"), options, output, progress);
    EXPECT_TRUE(has_all_training_tokens(output));
    fs::resize_file(output / "train_000000.bin", 500);
    EXPECT_FALSE(has_all_training_tokens(output));
    fs::remove(output / "train_000000.bin");
    EXPECT_FALSE(has_all_training_tokens(output));
    fs::remove_all(output);
  }
}

}  // namespace
}  // namespace phalanx
