// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/token_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"
#include "trainer/data/text/text_contents.h"
#include "trainer/io/file.h"
#include "trainer/tokenizers/byte_alphabet.h"
#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/gpt2_files.h"

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

TEST_F(TokenCache, KeepsThoseOfWhatIsNoTextForWhoAllowsThat) {
  TokenizeOptions options{.files = {folder_.write("1", std::string("PAR1\x15\x04", 6))},
                          .any_bytes = {.allowed_by = "the field"}};
  const LoadedTokenizer bytes{
      .tokenizer = std::make_shared<ByteTokenizer>(), .format = "bytes", .files = {}};
  EXPECT_THROW(tokens_of(options, bytes), UserError);
  EXPECT_EQ(made_, 0) << "before anything is read";
  EXPECT_FALSE(fs::exists(cache_.parent_path())) << "or written";
  options.any_bytes.are_allowed = true;
  const fs::path made = tokens_of(options, bytes);
  EXPECT_EQ(tokens_of(options, bytes), made);
  EXPECT_EQ(made_, 1);
  options.any_bytes.are_allowed = false;
  EXPECT_THROW(tokens_of(options, bytes), UserError) << "though the file and its tokens are known";
}

// A start that knows them opens none.
TEST_F(TokenCache, LooksAtFilesThatAreNewAlone) {
  const FileList files{folder_.write("1", "abc"), folder_.write("2", "cab")};
  std::vector<size_t> unread;
  const auto look = [&unread](const FileList& found) { unread.push_back(found.size()); };
  contents_of(cache_, files, look);
  contents_of(cache_, files, look);
  contents_of(cache_, {files[0], folder_.write("3", "bca")}, look);
  EXPECT_EQ(unread, (std::vector<size_t>{2, 1}));
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

FileList many_files(const TextFolder& folder) {
  FileList files;
  for (int i = 0; i < 300; ++i) {
    files.add(
        folder.write("many/" + std::to_string(i), std::string(1, "abc"[i % 3]) + "a").native());
  }
  return files;
}

TEST_F(TokenCache, NotesAllFilesOfAListInOneNote) {
  const FileList files = many_files(folder_);
  tokens_of({.files = files});
  EXPECT_EQ(files_below(cache_ / "contents").size(), 1);
  tokens_of({.files = files});
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(files_below(cache_ / "contents").size(), 1);
}

// A file whose note is kept though its content changes: it is not read.
void change_unseen(const fs::path& file, const std::string& text) {
  const auto changed = fs::last_write_time(file);
  std::ofstream(file, std::ios::binary) << text;
  fs::last_write_time(file, changed);
}

TEST_F(TokenCache, ReadsOnlyFilesThatNoNoteKnows) {
  FileList files = many_files(folder_);
  const fs::path first = tokens_of({.files = files});
  FileList more = files;
  more.add(folder_.write("new", "abc").native());
  const auto main_cache = std::exchange(cache_, folder_.path() / "other cache");
  const fs::path name = tokens_of({.files = more}).filename();  // It follows from what they hold.
  cache_ = main_cache;
  change_unseen(files[7], "cb");
  EXPECT_EQ(tokens_of({.files = files}), first);
  EXPECT_EQ(tokens_of({.files = more}).filename(), name) << "the note of another list says it";
}

TEST_F(TokenCache, TakesNoNoteThatIsBroken) {
  const FileList files = many_files(folder_);
  const fs::path first = tokens_of({.files = files});
  const fs::path note = files_below(cache_ / "contents").at(0);
  std::string text = read_text(note);
  for (const size_t place : {size_t{3}, text.size() / 2, text.size() - 1}) {
    std::string broken = text;
    broken[place] ^= 1;
    replace_file(note, broken);
    EXPECT_EQ(tokens_of({.files = files}), first);
  }
  replace_file(note, text.substr(0, 1000));
  EXPECT_EQ(tokens_of({.files = files}), first);
  EXPECT_EQ(made_, 1);
}

// The name of the note that version 0.1 has of a file.
fs::path note_of(const fs::path& file) {
  struct stat status {};
  stat(file.c_str(), &status);
  Xxh3 identity;
  for (const std::string& text :
       {fs::absolute(file).string(), fmt::format("{} {} {}.{}", status.st_ino, status.st_size,
                                                 status.st_mtim.tv_sec, status.st_mtim.tv_nsec)}) {
    const uint64_t size = text.size();
    identity.add(std::as_bytes(std::span(&size, 1)));
    identity.add(text);
  }
  return identity.digits128();
}

TEST_F(TokenCache, TakesTheNotesOfOneFileEach) {
  const fs::path file = folder_.write("1", "abc");
  fs::create_directories(cache_ / "contents");
  replace_file(cache_ / "contents" / note_of(file), xxh3_digits128("cba"));
  // By the note it holds "cba".
  const fs::path noted = tokens_of({.files = {file}});
  EXPECT_EQ(tokens_of({.files = {folder_.write("2", "cba")}}), noted);
  EXPECT_EQ(made_, 1);
}

// Computed by the version before: its caches must be found.
TEST_F(TokenCache, HasTheNamesThatItHadBefore) {
  const fs::path folder = tokens_of(
      {.files = {folder_.write("1", "abc"), folder_.write("2.jsonl", "{\"text\": \"a\"}\n")}});
  EXPECT_EQ(folder.filename(), "c58588f7c29d35d4029a520e1c4aeee1");
}

// A tokenizer of the 256 bytes, "he" and "el".
std::shared_ptr<const Tokenizer> byte_pairs(const std::string& merges) {
  nlohmann::json vocabulary{{"he", 256}, {"el", 257}};
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    vocabulary[visible_bytes({&character, 1})] = byte;
  }
  return parse_gpt2_files(vocabulary.dump(), merges);
}

TEST_F(TokenCache, MakesThoseOfAPairThatIsMergedTwiceAnewAndSaysWhy) {
  const LoadedTokenizer last{
      .tokenizer = byte_pairs("h e\ne l\nh e\n"), .format = "vocab.json", .files = {}};
  // As a version that takes the first merge of a pair has it.
  const LoadedTokenizer first{
      .tokenizer = byte_pairs("h e\ne l\n"), .format = "vocab.json", .files = {}};
  std::vector<std::string> said;
  const TokenizeOptions options{.files = {folder_.write("1", "hel")},
                                .say = [&](const std::string& line) { said.push_back(line); }};
  const fs::path before = tokens_of(options, first);
  EXPECT_TRUE(said.empty());
  const fs::path now = tokens_of(options, last);
  EXPECT_NE(now, before);
  EXPECT_EQ(read_text(now / "train_000000.bin").substr(1024), std::string("h\0\x01\x01", 4));
  ASSERT_EQ(said.size(), 1);
  EXPECT_NE(said[0].find("'" + before.string() + "' are made anew"), std::string::npos) << said[0];
  EXPECT_EQ(tokens_of(options, last), now);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(said.size(), 1);
}

TEST_F(TokenCache, BeginsAnewWhereOtherWorkWasLeft) {
  const fs::path broken = folder_.write("1", std::string(3'000'000, 'a') + "x");
  EXPECT_THROW(tokens_of({.files = {broken}}), std::runtime_error);
  fs::rename(broken, folder_.path() / "2");
  EXPECT_THROW(tokens_of({.files = {folder_.path() / "2"}}), std::runtime_error);
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
