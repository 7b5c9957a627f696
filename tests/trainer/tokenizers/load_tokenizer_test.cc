// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/load_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/tokenizers/small_bpe.h"
#include "tests/trainer/tokenizers/small_sentencepiece.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const LoadedTokenizer& loaded) {
  std::vector<std::string> names;
  for (const TokenizerFile& file : loaded.files) names.push_back(file.name);
  return names;
}

class LoadTokenizer : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    const fs::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string error_of(const fs::path& name) {
    try {
      load_tokenizer("--tokenizer", name);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};

TEST_F(LoadTokenizer, FindsTokenizerJsonByFileAndByFolder) {
  const fs::path file = write("tokenizer.json", small_tokenizer_json().dump());
  for (const fs::path& name : {file, folder_.path()}) {
    const LoadedTokenizer loaded = load_tokenizer("--tokenizer", name);
    EXPECT_EQ(loaded.format, "tokenizer.json");
    EXPECT_THAT(names_of(loaded), ElementsAre("tokenizer.json"));
    EXPECT_EQ(loaded.files[0].content, small_tokenizer_json().dump());
    EXPECT_EQ(loaded.tokenizer->vocabulary_size(), 262);
  }
}

TEST_F(LoadTokenizer, TakesTheEndOfTextFromTheConfigBesideIt) {
  write("tokenizer.json", small_tokenizer_json().dump());
  write("tokenizer_config.json", R"({"eos_token": "<end>"})");
  EXPECT_THAT(error_of(folder_.path()), HasSubstr("'<end>'"));
  write("tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  EXPECT_THAT(names_of(load_tokenizer("", folder_.path())),
              ElementsAre("tokenizer.json", "tokenizer_config.json"));
}

TEST_F(LoadTokenizer, FindsGpt2sFilesByEither) {
  const nlohmann::json model = small_tokenizer_json()["model"];
  nlohmann::json vocabulary = model["vocab"];
  vocabulary["<|endoftext|>"] = 261;
  const fs::path encoder = write("encoder.json", vocabulary.dump());
  EXPECT_THAT(error_of(encoder), HasSubstr("encoder.json with vocab.bpe"));
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : model["merges"]) merges += merge.get<std::string>() + "\n";
  const fs::path bpe = write("vocab.bpe", merges);
  for (const fs::path& name : {encoder, bpe, folder_.path()}) {
    const LoadedTokenizer loaded = load_tokenizer("--tokenizer", name);
    EXPECT_THAT(names_of(loaded), ElementsAre("encoder.json", "vocab.bpe"));
    EXPECT_THAT(encode(*loaded.tokenizer, "hello w"), ElementsAre(259, 260));
    EXPECT_EQ(loaded.tokenizer->end_of_text(), 261);
  }
  write("vocab.bpe", "#version: 0.2\nh e\nhe\n");
  EXPECT_THAT(error_of(bpe), AllOf(HasSubstr("encoder.json"), HasSubstr("line 3")));
}

TEST_F(LoadTokenizer, FindsModelsOfSentencePiece) {
  const std::string model = small_model().SerializeAsString();
  const fs::path any = write("any name.model", model);
  const LoadedTokenizer loaded = load_tokenizer("--tokenizer", any);
  EXPECT_THAT(names_of(loaded), ElementsAre("tokenizer.model")) << "a folder with it is found";
  EXPECT_EQ(loaded.files[0].content, model);
  EXPECT_EQ(loaded.tokenizer->end_of_text(), 2);
  EXPECT_THAT(error_of(folder_.path()), HasSubstr("can be named itself"));
  write("tokenizer.model", model);
  EXPECT_EQ(load_tokenizer("", folder_.path()).format, "tokenizer.model");
  EXPECT_THAT(error_of(write("broken.model", "text")), HasSubstr("broken.model': it is no model"));
}

TEST_F(LoadTokenizer, PrefersWhatAFolderHasMoreOf) {
  write("tokenizer.model", small_model().SerializeAsString());
  write("tokenizer.json", small_tokenizer_json().dump());
  EXPECT_EQ(load_tokenizer("", folder_.path()).format, "tokenizer.json");
  EXPECT_EQ(load_tokenizer("", folder_.path() / "tokenizer.model").format, "tokenizer.model");
  write("spiece.model", small_model().SerializeAsString());
  const LoadedTokenizer loaded = load_tokenizer("", folder_.path());
  EXPECT_EQ(loaded.format, "spiece.model") << "T5's tokenizer.json is of no kind that is supported";
  EXPECT_THAT(names_of(loaded), ElementsAre("spiece.model"));
}

TEST_F(LoadTokenizer, MakesTokensOfCharacters) {
  const LoadedTokenizer loaded = load_tokenizer("", write("characters.txt", "cab"));
  EXPECT_THAT(encode(*loaded.tokenizer, "abc"), ElementsAre(0, 1, 2));
  EXPECT_THAT(error_of(write("characters.txt", "a\xFF")), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(write("characters.txt", "")), HasSubstr("no characters"));
}

TEST_F(LoadTokenizer, KnowsTheTokenizerOfBytes) {
  const LoadedTokenizer loaded = load_tokenizer("--tokenizer", "bytes");
  EXPECT_EQ(loaded.tokenizer->vocabulary_size(), 256);
  EXPECT_THAT(names_of(loaded), ElementsAre());
}

TEST_F(LoadTokenizer, SaysWhatItCanTake) {
  EXPECT_THAT(error_of("nowhere"), AllOf(HasSubstr("--tokenizer: "), HasSubstr("'nowhere'")));
  EXPECT_THAT(error_of(folder_.path()), HasSubstr("vocab.json with merges.txt"));
  EXPECT_THAT(error_of(write("words.txt", "a")), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace phalanx
