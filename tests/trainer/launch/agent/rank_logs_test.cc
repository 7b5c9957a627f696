// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/rank_logs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

TEST(ChosenStreams, AreThoseOfAllRanksOrOfSome) {
  const ChosenStreams both("--tee", "3");
  EXPECT_TRUE(both.has_out(0) && both.has_err(9));
  const ChosenStreams some("--tee", "0:1,2:2");
  EXPECT_TRUE(some.has_out(0) && !some.has_err(0));
  EXPECT_TRUE(!some.has_out(1) && !some.has_err(1));
  EXPECT_TRUE(!some.has_out(2) && some.has_err(2));
  EXPECT_TRUE(ChosenStreams("--tee", "0").is_empty());
}

TEST(ChosenStreams, RefuseWhatIsNeither) {
  for (const char* text : {"4", "-1", "both", "0:4", "0=1", "1:", ":1", "0:1;1:2"}) {
    EXPECT_THROW(ChosenStreams("--tee", text), UserError) << text;
  }
}

// The folders of a launch below `folder`, whose names end in random letters.
fs::path only_folder(const fs::path& folder) {
  const fs::directory_iterator entries(folder);
  return entries == fs::directory_iterator() ? fs::path() : entries->path();
}

TEST(RankLogs, LieAsThoseOfTorchrun) {
  const TemporaryFolder folder;
  RankLogs logs({.folder = folder.path() / "logs", .to_files = ChosenStreams("--redirects", "3")},
                "my/run", /*needs_folder=*/false);
  logs.begin_attempt(1, 2);
  RankStreams streams = logs.streams(/*rank=*/5, /*local_rank=*/1);
  EXPECT_FALSE(streams.out.is_shown);
  EXPECT_EQ(::write(streams.err.file.number(), "boo", 3), 3);
  const fs::path launch = only_folder(folder.path() / "logs");
  EXPECT_TRUE(launch.filename().string().starts_with("my_run_")) << launch;
  std::stringstream text;
  text << std::ifstream(launch / "attempt_1/1/stderr.log").rdbuf();
  EXPECT_EQ(text.str(), "boo");
  EXPECT_EQ(logs.file_of(1, true), launch / "attempt_1/1/stderr.log");
  EXPECT_EQ(logs.error_file(0), launch / "attempt_1/0/error.json");
}

TEST(RankLogs, TheConsoleShowsSomeRanks) {
  const TemporaryFolder folder;
  RankLogs logs(
      {.folder = folder.path(), .to_both = ChosenStreams("--tee", "0:3"), .shown_ranks = {0}},
      "run", false);
  logs.begin_attempt(0, 2);
  const RankStreams first = logs.streams(0, 0);
  EXPECT_TRUE(first.out.is_shown && first.out.file.is_open());
  const RankStreams second = logs.streams(1, 1);
  EXPECT_FALSE(second.out.is_shown || second.out.file.is_open());
}

TEST(RankLogs, AFolderOfErrorFilesAloneGoesWithThem) {
  fs::path file;
  {
    RankLogs logs({}, "run", /*needs_folder=*/true);
    logs.begin_attempt(0, 1);
    file = logs.error_file(0);
    EXPECT_TRUE(fs::is_directory(file.parent_path()));
  }
  EXPECT_FALSE(fs::exists(file.parent_path().parent_path().parent_path()));
}

TEST(RankLogs, AFolderThatCannotBeWrittenIsToldBeforehand) {
  EXPECT_THROW(RankLogs({.folder = "/dev/null/logs"}, "run", true), UserError);
}

}  // namespace
}  // namespace phalanx
