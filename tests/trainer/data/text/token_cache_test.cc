// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/token_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

class TokenCache : public testing::Test {
 protected:
  fs::path tokens_of(const TokenizeOptions& options, const LoadedTokenizer& tokenizer) {
    return cached_tokens(cache_, tokenizer, options,
                         [&](const ByteProgress&, const std::function<void()>& work) {
                           ++made_;
                           work();
                         });
  }
  fs::path tokens_of(const TokenizeOptions& options) { return tokens_of(options, tokenizer_); }

  TextFolder folder_;
  fs::path cache_ = folder_.path() / "cache/tokens";
  LoadedTokenizer tokenizer_ = character_tokenizer("abc");
  int made_ = 0;
};

TEST_F(TokenCache, MakesTokensOnce) {
  const TokenizeOptions options{.files = {folder_.write("1", "abc")}};
  const fs::path first = tokens_of(options);
  EXPECT_TRUE(fs::exists(first / "train_000000.bin"));
  EXPECT_EQ(tokens_of(options), first);
  EXPECT_EQ(made_, 1);
}

TEST_F(TokenCache, KnowsContentWhereverItLies) {
  const fs::path first = tokens_of({.files = {folder_.write("1", "abc")}});
  EXPECT_EQ(tokens_of({.files = {folder_.write("other/2", "abc")}}), first);
  EXPECT_EQ(made_, 1);
}

TEST_F(TokenCache, MakesThemAnewForOtherContentTokenizersAndOptions) {
  const fs::path file = folder_.write("1", "abc");
  std::vector<fs::path> folders{tokens_of({.files = {file}})};
  folders.push_back(tokens_of({.files = {file}}, character_tokenizer("abcd")));
  folders.push_back(tokens_of({.files = {file}, .unit = DocumentUnit::line}));
  folders.push_back(tokens_of({.files = {file, file}}));
  const fs::path other = folder_.write("2", "acb");
  folders.push_back(tokens_of({.files = {other}}));
  for (size_t i = 0; i < folders.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(folders[i], folders[j]);
  }
  EXPECT_EQ(made_, 5);
}

TEST_F(TokenCache, SeesAChangeOfAFile) {
  const fs::path file = folder_.write("1", "abc");
  const fs::path first = tokens_of({.files = {file}});
  folder_.write("1", "bca");
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_NE(tokens_of({.files = {file}}), first);
}

TEST_F(TokenCache, IsMadeByOneOfSeveralProcesses) {
  std::string text;
  for (int i = 0; i < 3'000'000; ++i) text += "abc"[i % 3];
  const TokenizeOptions options{.files = {folder_.write("1", text)}};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      tokens_of(options);
      _exit(made_);
    } catch (...) {
      _exit(9);
    }
  }
  int made = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    made += WEXITSTATUS(status);
  }
  EXPECT_EQ(made, 1);
  tokens_of(options);
  EXPECT_EQ(made_, 0);
}

}  // namespace
}  // namespace phalanx
