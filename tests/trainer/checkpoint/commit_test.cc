// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/layout.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

void make_folder(const fs::path& folder, std::string_view text) {
  fs::create_directory(folder);
  spill(folder / "file", text);
}

TEST(StagedFolder, IsThereOnlyAfterCommit) {
  const TemporaryFolder folder;
  {
    StagedFolder staged(folder / "step-00000001");
    spill(staged.path() / "file", "new");
    EXPECT_FALSE(fs::exists(folder / "step-00000001"));
    staged.commit();
  }
  EXPECT_EQ(slurp(folder / "step-00000001/file"), "new");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(StagedFolder, AsNewItReplacesNothingButAnEmptyFolder) {
  const TemporaryFolder folder;
  const auto commit_to = [&](const std::string& name) {
    StagedFolder staged(folder / name);
    spill(staged.path() / "file", "new");
    staged.commit_as_new();
  };
  fs::create_directory(folder / "empty");
  make_folder(folder / "full", "old");
  spill(folder / "text", "old");
  commit_to("new");
  commit_to("empty");
  EXPECT_THROW(commit_to("full"), IoError);
  EXPECT_THROW(commit_to("text"), IoError);
  EXPECT_EQ(slurp(folder / "new/file"), "new");
  EXPECT_EQ(slurp(folder / "empty/file"), "new");
  EXPECT_EQ(slurp(folder / "full/file"), "old");
  EXPECT_EQ(slurp(folder / "text"), "old");
  EXPECT_EQ(entries(folder.path()), 4);
}

TEST(StagedFolder, WithoutCommitNothingIsLeft) {
  const TemporaryFolder folder;
  {
    StagedFolder staged(folder / "step-00000001");
    spill(staged.path() / "file", "new");
  }
  EXPECT_EQ(entries(folder.path()), 0);
}

TEST(StagedFolder, IsNoLeftoverWhileItsOwnerLives) {
  const TemporaryFolder folder;
  StagedFolder staged(folder / "step-00000001");
  EXPECT_THAT(clean_leftovers(folder.path()), IsEmpty());
  EXPECT_TRUE(fs::exists(staged.path()));
}

TEST(StagedFolder, TakesThePlaceOfADeadProcessWithTheSameId) {
  const TemporaryFolder folder;
  make_folder(aside(folder / "step-00000001"), "left behind");
  StagedFolder staged(folder / "step-00000001");
  EXPECT_TRUE(fs::is_empty(staged.path()));
}

TEST(StagedFolder, ReplacesACommittedOne) {
  const TemporaryFolder folder;
  make_folder(folder / "step-00000001", "old");
  {
    StagedFolder staged(folder / "step-00000001");
    spill(staged.path() / "file", "new");
    staged.commit();
  }
  EXPECT_EQ(slurp(folder / "step-00000001/file"), "new");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(StagedFolder, TheReplacedOneIsThereUntilTheNewOneIs) {
  const TemporaryFolder folder;
  make_folder(folder / "step-00000001", "old");
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int round = 0; round < 300; ++round) {
      StagedFolder staged(folder / "step-00000001");
      spill(staged.path() / "file", "new");
      staged.commit();
    }
    done = true;
  });
  int64_t missing = 0;
  while (!done) missing += fs::exists(folder / "step-00000001/file") ? 0 : 1;
  writer.join();
  EXPECT_EQ(missing, 0);
}

TEST(ExchangeFolders, SwapsThem) {
  const TemporaryFolder folder;
  make_folder(folder / "a", "one");
  make_folder(folder / "b", "two");
  ASSERT_TRUE(exchange_folders(folder / "a", folder / "b"));
  EXPECT_EQ(slurp(folder / "a/file"), "two");
  EXPECT_EQ(slurp(folder / "b/file"), "one");
  EXPECT_THROW(exchange_folders(folder / "a", folder / "none"), IoError);
}

TEST(ReplaceInTwoSteps, ReplacesAndRemovesTheOldOne) {
  const TemporaryFolder folder;
  make_folder(folder / "new", "new");
  make_folder(folder / "step-00000001", "old");
  replace_in_two_steps(folder / "new", folder / "step-00000001");
  EXPECT_EQ(slurp(folder / "step-00000001/file"), "new");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(ReplaceInTwoSteps, AFailurePutsTheOldOneBack) {
  const TemporaryFolder folder;
  make_folder(folder / "step-00000001", "old");
  EXPECT_THROW(replace_in_two_steps(folder / "none", folder / "step-00000001"), IoError);
  EXPECT_EQ(slurp(folder / "step-00000001/file"), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

}  // namespace
}  // namespace phalanx
