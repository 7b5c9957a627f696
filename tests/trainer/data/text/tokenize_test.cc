// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokenize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/io/file.h"
#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> numbers_of(const fs::path& path, size_t header = 0) {
  const std::string bytes = read_text(path).substr(header);
  std::vector<uint16_t> stored(bytes.size() / 2);
  std::memcpy(stored.data(), bytes.data(), stored.size() * 2);
  return {stored.begin(), stored.end()};
}

class Tokenize : public testing::Test {
 protected:
  TokenizeSummary run(const TokenizeOptions& options) {
    ByteProgress progress;
    const TokenizeSummary summary = tokenize(tokenizer_, options, output_, progress);
    EXPECT_EQ(progress.done, progress.all);
    return summary;
  }

  std::string error_of(const TokenizeOptions& options) {
    try {
      run(options);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  }

  TextFolder folder_;
  fs::path output_ = folder_.path() / "tokens";
  LoadedTokenizer tokenizer_ = character_tokenizer("abc");
};

TEST_F(Tokenize, WritesTokensAndWhatTheyAre) {
  const TokenizeSummary summary =
      run({.files = {folder_.write("1", "abc"), folder_.write("2", "cab")},
           .format = TokenFileFormat::nanogpt});
  EXPECT_THAT(numbers_of(output_ / "train_000000.bin"), ElementsAre(0, 1, 2, 2, 0, 1));
  EXPECT_EQ(summary.documents, 2);
  EXPECT_EQ(summary.tokens, 6);
  EXPECT_EQ(summary.characters, 6);
  EXPECT_EQ(summary.longest, 3);
  EXPECT_EQ(read_text(output_ / "tokenizer/characters.txt"), "abc");
  const auto description = nlohmann::json::parse(read_text(output_ / "tokens.json"));
  EXPECT_EQ(description["vocabulary_size"], 3);
  EXPECT_EQ(description["bytes_per_token"], 2);
  EXPECT_EQ(description["format"], "nanogpt");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(output_))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("tokenizer", "tokens.json", "train_000000.bin"));
}

TEST_F(Tokenize, BeginsANewFileWhenOneIsFull) {
  run({.files = {folder_.write("1", "abcabc"), folder_.write("2", "c")}, .file_tokens = 3});
  constexpr size_t kHeader = 1024;
  EXPECT_THAT(numbers_of(output_ / "train_000000.bin", kHeader), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers_of(output_ / "train_000001.bin", kHeader), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers_of(output_ / "train_000002.bin", kHeader), ElementsAre(2));
  const auto header = read_text(output_ / "train_000002.bin").substr(0, 12);
  EXPECT_EQ(header, std::string("\x88\xd8\x34\x01\x01\0\0\0\x01\0\0\0", 12));
}

TEST_F(Tokenize, ReadsAFieldOfJsonl) {
  const auto file =
      folder_.write("1.jsonl", "{\"body\": \"ab\"}\n\n{\"body\": \"\"}\n{\"body\": \"c\"}\n");
  const TokenizeSummary summary =
      run({.files = {file}, .field = "body", .format = TokenFileFormat::nanogpt});
  EXPECT_THAT(numbers_of(output_ / "train_000000.bin"), ElementsAre(0, 1, 2));
  EXPECT_EQ(summary.empty_documents, 2);
}

TEST_F(Tokenize, NamesALineThatHoldsNoText) {
  for (const char* line : {"{\"text\": 1}", "{\"other\": \"a\"}", "[]", "{"}) {
    const auto file = folder_.write("1.jsonl", "{\"text\": \"a\"}\n" + std::string(line) + "\n");
    EXPECT_THAT(error_of({.files = {file}}),
                AllOf(HasSubstr("1.jsonl', line 2, byte 14: the line ")))
        << line;
    fs::remove_all(work_folder(output_));
  }
}

TEST_F(Tokenize, DrawsDocumentsForValidation) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "abc\n";
  const TokenizeOptions options{.files = {folder_.write("1", lines)},
                                .unit = DocumentUnit::line,
                                .format = TokenFileFormat::nanogpt,
                                .validation_fraction = 0.1};
  const TokenizeSummary summary = run(options);
  EXPECT_NEAR(static_cast<double>(summary.validation_documents), 200, 60);
  EXPECT_EQ(summary.validation_tokens, 3 * summary.validation_documents);
  EXPECT_EQ(fs::file_size(output_ / "val_000000.bin"), 2 * summary.validation_tokens);
  EXPECT_EQ(fs::file_size(output_ / "train_000000.bin"),
            2 * (summary.tokens - summary.validation_tokens));
}

TEST_F(Tokenize, RefusesAPlaceThatIsTaken) {
  const auto file = folder_.write("1", "a");
  run({.files = {file}});
  EXPECT_THAT(error_of({.files = {file}}), HasSubstr("is no empty folder"));
}

TEST_F(Tokenize, BeginsAnewWhereNothingIsLost) {
  const auto first = folder_.write("1", "a");
  const auto second = folder_.write("2.jsonl", "no JSON\n");
  const TokenizeOptions options{.files = {first, second},
                                .save_every = std::chrono::milliseconds(0)};
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  EXPECT_FALSE(fs::exists(output_));
  folder_.write("2.jsonl", "{\"text\": \"b\"}\n");  // Both are in the first batch.
  EXPECT_EQ(run(options).documents, 2);
}

TEST_F(Tokenize, RefusesToGoOnWithOtherInput) {
  const auto large = folder_.write("1", std::string(3'000'000, 'a'));
  const auto broken = folder_.write("2.jsonl", "no JSON\n");
  std::vector<std::string> said;
  TokenizeOptions options{.files = {large, broken},
                          .save_every = std::chrono::milliseconds(0),
                          .say = [&](const std::string& line) { said.push_back(line); }};
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  ASSERT_TRUE(fs::exists(work_folder(output_) / "state.json"));
  const std::string state = read_text(work_folder(output_) / "state.json");
  options.file_tokens = 7;
  EXPECT_THAT(error_of(options), AllOf(HasSubstr("other inputs or options (--file-tokens)"),
                                       HasSubstr("tokens.part"), HasSubstr("--restart")));
  options.file_tokens = 100'000'000;
  folder_.write("2.jsonl", "{\"text\": \"b\"}\n");
  EXPECT_THAT(error_of(options), AllOf(HasSubstr("(the texts)"), HasSubstr("--restart")));
  EXPECT_EQ(read_text(work_folder(output_) / "state.json"), state) << "nothing is lost";
  EXPECT_THAT(said, testing::IsEmpty());
  options.earlier = EarlierWork::discard;
  EXPECT_EQ(run(options).documents, 2);
  EXPECT_THAT(said, testing::IsEmpty());
}

const std::string kParquet("PAR1\x15\x04\x15\x10", 8);

TEST_F(Tokenize, RefusesWhatIsNoTextBeforeAnythingIsWritten) {
  const TokenizeOptions options{.files = {folder_.write("1", "abc"), folder_.write("2", kParquet)}};
  EXPECT_THAT(error_of(options), AllOf(HasSubstr("2' is a Parquet file, not text"),
                                       HasSubstr("--any-bytes reads any bytes")));
  EXPECT_FALSE(fs::exists(work_folder(output_)));
}

// Not all of many files are looked at beforehand: this one is when it is read.
TEST_F(Tokenize, RefusesWhatIsNoTextWhenItIsRead) {
  const std::string text = folder_.write("text", "abc").native();
  TokenizeOptions options{.files = {}, .format = TokenFileFormat::nanogpt};
  for (int i = 0; i < 2001; ++i) options.files.add(text);
  options.files.add(folder_.write("large", std::string(3'000'000, 'a')).native());
  options.files.add(folder_.write("table", kParquet).native());
  options.files.add(text);
  EXPECT_THAT(error_of(options), HasSubstr("table' is a Parquet file, not text"));
  EXPECT_TRUE(fs::exists(work_folder(output_) / "state.json")) << "what is done is kept";
  tokenizer_ = {.tokenizer = std::make_shared<ByteTokenizer>(), .format = "bytes", .files = {}};
  options.any_bytes.are_allowed = true;
  options.earlier = EarlierWork::discard;
  EXPECT_EQ(run(options).documents, 2004);
}

// Another tokenizer makes other tokens: they must not follow those that are there.
TEST_F(Tokenize, RefusesToGoOnWithAnotherTokenizer) {
  TokenizeOptions options{.files = {folder_.write("1", std::string(3'000'000, 'a')),
                                    folder_.write("2.jsonl", "no JSON\n")},
                          .save_every = std::chrono::milliseconds(0)};
  std::vector<std::string> said;
  options.say = [&](const std::string& line) { said.push_back(line); };
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  const LoadedTokenizer earlier = tokenizer_;
  for (const LoadedTokenizer& other :
       {character_tokenizer("abcd"),
        LoadedTokenizer{
            .tokenizer = std::make_shared<ByteTokenizer>(), .format = "bytes", .files = {}}}) {
    tokenizer_ = other;
    EXPECT_THAT(error_of(options), AllOf(HasSubstr("other inputs or options ("),
                                         HasSubstr("tokenizer)"), HasSubstr("--restart")));
  }
  EXPECT_THAT(said, testing::IsEmpty()) << "nothing goes on";
  tokenizer_ = earlier;
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  EXPECT_THAT(said, ElementsAre(HasSubstr("going on in ")));
}

TEST_F(Tokenize, RefusesAFolderOfOthers) {
  folder_.write("tokens.part/diary.txt", "dear diary");
  TokenizeOptions options{.files = {folder_.write("1", "a")}};
  EXPECT_THAT(error_of(options),
              AllOf(HasSubstr("has files, but no state.json"), HasSubstr("--restart")));
  EXPECT_TRUE(fs::exists(folder_.path() / "tokens.part/diary.txt"));
  options.earlier = EarlierWork::discard;
  EXPECT_EQ(run(options).documents, 1);
  EXPECT_FALSE(fs::exists(output_ / "diary.txt"));
}

TEST_F(Tokenize, SaysThatItGoesOn) {
  const auto large = folder_.write("1", std::string(3'000'000, 'a'));
  const auto broken = folder_.write("2.jsonl", "{\"text\": \"x\"}\n");
  std::vector<std::string> said;
  TokenizeOptions options{.files = {large, broken},
                          .save_every = std::chrono::milliseconds(0),
                          .say = [&](const std::string& line) { said.push_back(line); }};
  EXPECT_THAT(error_of(options), HasSubstr("is no token"));
  options.on_broken = OnBrokenDocument::skip;  // May change.
  EXPECT_EQ(run(options).documents, 1);
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("going on in"), HasSubstr("tokens.part")),
                                HasSubstr("left out: ")));
}

TEST_F(Tokenize, LeavesOutWhatIsBrokenByCause) {
  const std::string lines =
      "{\"text\": \"abc\"}\n{\"text\": null}\n{\"text\": 3}\nno JSON\n{\"body\": 1}\n"
      "{\"text\": \"axc\"}\n\n{\"text\": \"ab\"}\n";
  std::vector<std::string> said;
  const TokenizeOptions options{.files = {folder_.write("1.jsonl", lines)},
                                .format = TokenFileFormat::nanogpt,
                                .on_broken = OnBrokenDocument::skip,
                                .say = [&](const std::string& line) { said.push_back(line); }};
  const TokenizeSummary summary = run(options);
  const std::map<std::string, int64_t> expected{{"no text in the field 'text'", 2},
                                                {"no JSON object", 1},
                                                {"no field 'text'", 1},
                                                {"a text that the tokenizer cannot encode", 1}};
  EXPECT_EQ(summary.left_out, expected);
  EXPECT_EQ(summary.documents, 2);
  EXPECT_EQ(summary.empty_documents, 1);
  EXPECT_THAT(numbers_of(output_ / "train_000000.bin"), ElementsAre(0, 1, 2, 0, 1));
  ASSERT_EQ(said.size(), 4);
  EXPECT_THAT(said[0], AllOf(HasSubstr("1.jsonl', line 2"), HasSubstr("has no text")));
}

TEST_F(Tokenize, ReadsAnArrayOfObjects) {
  const std::string array = "[\n  {\"text\": \"ab\"},\n  {\"text\": 1},\n  {\"text\": \"c\"}\n]";
  const auto file = folder_.write("1.json", array);
  TokenizeOptions options{.files = {file}, .format = TokenFileFormat::nanogpt};
  EXPECT_THAT(error_of(options), HasSubstr("1.json', line 3, byte 22: the object has no text"));
  options.on_broken = OnBrokenDocument::skip;
  EXPECT_EQ(run(options).documents, 2);
  EXPECT_THAT(numbers_of(output_ / "train_000000.bin"), ElementsAre(0, 1, 2));
}

TEST_F(Tokenize, CountsJsonThatIsPlainText) {
  const TokenizeOptions options{.files = {folder_.write("1.json", "abc"), folder_.write("2", "a"),
                                          folder_.write("3.json", "c\nc")},
                                .unit = DocumentUnit::line};
  EXPECT_EQ(run(options).plain_json_files, 2);
}

TEST_F(Tokenize, RefusesToGoOnWhereTokensAreLost) {
  const auto large = folder_.write("1", std::string(3'000'000, 'a'));
  const auto broken = folder_.write("2.jsonl", "no JSON\n");
  const TokenizeOptions options{.files = {large, broken},
                                .file_tokens = 1'000'000,
                                .save_every = std::chrono::milliseconds(0)};
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  const fs::path work = work_folder(output_);
  fs::remove(work / "train_000001.bin");
  EXPECT_THAT(error_of(options),
              AllOf(HasSubstr("train_000001.bin' is missing: remove"), HasSubstr("begin anew")));
  fs::remove_all(work);
  folder_.write("1", std::string(2'500'000, 'a'));
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  fs::resize_file(work / "train_000002.bin", 5000);
  EXPECT_THAT(error_of(options), HasSubstr("train_000002.bin' is shorter than it was: remove"));
}

TEST_F(Tokenize, RefusesAStateThatCannotBe) {
  const auto large = folder_.write("1", std::string(3'000'000, 'a'));
  const auto broken = folder_.write("2.jsonl", "no JSON\n");
  const TokenizeOptions options{.files = {large, broken},
                                .save_every = std::chrono::milliseconds(0)};
  EXPECT_THAT(error_of(options), HasSubstr("no JSON"));
  const fs::path path = work_folder(output_) / "state.json";
  const auto whole = nlohmann::json::parse(read_text(path));
  for (const char* place : {"/state/position/file", "/state/position/offset",
                            "/state/training/tokens", "/state/training/files"}) {
    for (const nlohmann::json& number : {nlohmann::json(-1), nlohmann::json(1e300),
                                         nlohmann::json(int64_t{1} << 60), nlohmann::json("x")}) {
      auto state = whole;
      state[nlohmann::json::json_pointer(place)] = number;
      replace_file(path, state.dump());
      EXPECT_THAT(error_of(options),
                  AllOf(HasSubstr("state.json' is broken"), HasSubstr("--restart")));
    }
  }
  auto state = whole;
  state["state"]["position"]["file"] = 3;
  replace_file(path, state.dump());
  EXPECT_THAT(error_of(options), HasSubstr("state.json' is broken"));
}

// Every file of a folder, by its path there.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      contents[fs::relative(entry.path(), folder)] = read_text(entry.path());
    }
  }
  return contents;
}

// In a child of a test: nothing may come back into the test's own code.
[[noreturn]] void tokenize_and_exit(const LoadedTokenizer& tokenizer,
                                    const TokenizeOptions& options, const fs::path& output) {
  try {
    ByteProgress progress;
    tokenize(tokenizer, options, output, progress);
    _exit(0);
  } catch (...) {
    _exit(1);
  }
}

// 16 MB in documents of many lengths.
std::string many_lines() {
  std::mt19937 random(11);
  std::string text;
  while (text.size() < 16'000'000) text += std::string(random() % 2000, "abc"[random() % 3]) + "\n";
  return text;
}

// Texts whose documents are longer than what is encoded at a time.
TEST_F(Tokenize, WritesLongDocumentsAsShortOnes) {
  std::mt19937 random(19);
  std::string text(2'300'000, 'a');
  for (char& c : text) c = "abc"[random() % 3];
  const FileList files{folder_.write("1", text), folder_.write("2", "abc"),
                       folder_.write("3", text + text), folder_.write("4", "")};
  for (const auto format :
       {TokenFileFormat::llmc, TokenFileFormat::nanogpt, TokenFileFormat::megatron}) {
    const TokenizeOptions options{.files = files, .format = format, .file_tokens = 2'000'000};
    const TokenizeSummary summary = run(options);
    EXPECT_EQ(summary.documents, 3);
    EXPECT_EQ(summary.empty_documents, 0) << "an empty file has no document";
    EXPECT_EQ(summary.longest, static_cast<int64_t>(2 * text.size()));
    EXPECT_EQ(summary.tokens, static_cast<int64_t>(3 * text.size()) + 3);
    EXPECT_EQ(summary.characters, summary.tokens);
    std::string all;
    for (int i = 0; fs::exists(output_ / fmt::format("train_{:06}.bin", i)); ++i) {
      const size_t header = format == TokenFileFormat::llmc ? 1024 : 0;
      const fs::path file = output_ / fmt::format("train_{:06}.bin", i);
      for (const int number : numbers_of(file, header)) all += "abc"[number];
    }
    EXPECT_TRUE(all == text + "abc" + text + text) << static_cast<int>(format);
    if (format == TokenFileFormat::megatron) {
      const std::string index = read_text(output_ / "train_000000.idx");
      int32_t first = 0;
      std::memcpy(&first, index.data() + 34, sizeof first);
      EXPECT_EQ(first, static_cast<int32_t>(text.size()));
    }
    fs::remove_all(output_);
  }
}

int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

// Memory of a child that makes tokens of files, above what it has before.
int64_t memory_of(const LoadedTokenizer& tokenizer, const FileList& files, const fs::path& output) {
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream("/proc/self/clear_refs") << "5";  // Resets the peak.
    const int64_t before = peak_kib();
    try {
      ByteProgress progress;
      tokenize(tokenizer, {.files = files, .threads = 2}, output, progress);
    } catch (...) {
      _exit(255);
    }
    _exit(static_cast<int>(std::min<int64_t>((peak_kib() - before) / 1024, 254)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST_F(Tokenize, NeedsNoMoreMemoryForALongDocument) {
  std::string text(40'000'000, 'a');
  const FileList one{folder_.write("long", text)};
  text = {};
  EXPECT_LT(memory_of(tokenizer_, one, output_), 50) << "MiB, of a text of 38 MiB";
}

TEST_F(Tokenize, NeedsNoMoreMemoryForManyFiles) {
  FileList files;
  for (int i = 0; i < 1500; ++i) {
    files.add(folder_.write("many/" + std::to_string(i), "abcabc").native());
  }
  EXPECT_LT(memory_of(tokenizer_, files, output_), 40) << "MiB; each once took a quarter";
}

TEST_F(Tokenize, KilledAtAnyMomentItGoesOn) {
  const std::string lines = many_lines();
  TokenizeOptions options{.files = {folder_.write("1", lines), folder_.write("2", "abc"),
                                    folder_.write("long", std::string(9'000'000, 'b'))},
                          .unit = DocumentUnit::line,
                          .validation_fraction = 0.1,
                          .file_tokens = 5'000'000,
                          .threads = 2,
                          .save_every = std::chrono::milliseconds(0)};
  for (const auto format :
       {TokenFileFormat::llmc, TokenFileFormat::nanogpt, TokenFileFormat::megatron}) {
    options.format = format;
    run(options);
    const auto expected = contents_of(output_);
    fs::remove_all(output_);
    std::mt19937 random(13);
    int kills = 0;
    int gone_on = 0;  // With a state on disk.
    for (bool done = false; !done; ++kills) {
      gone_on += fs::exists(work_folder(output_) / "state.json") ? 1 : 0;
      const pid_t child = fork();
      if (child == 0) tokenize_and_exit(tokenizer_, options, output_);
      // Later each time, so that it ends on any machine.
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % (50 * (kills + 1))));
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      // The kill may come behind the end, too: what is whole is not made again.
      done = WIFEXITED(status) || fs::exists(output_);
      ASSERT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
    }
    EXPECT_GT(gone_on, 0);
    EXPECT_TRUE(contents_of(output_) == expected) << "of format " << static_cast<int>(format);
    fs::remove_all(output_);
  }
}

TEST(WorkFolder, LiesBesideTheFolder) {
  EXPECT_EQ(work_folder("/x/tokens"), "/x/tokens.part");
  EXPECT_EQ(work_folder("/x/tokens/"), "/x/tokens.part");
  EXPECT_EQ(work_folder("/x/y/../tokens.v1"), "/x/tokens.v1.part");
}

}  // namespace
}  // namespace phalanx
