// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/layout.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/io/without_privileges.h"
#include "trainer/base/user_error.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::ThrowsMessage;

// A folder that looks like a checkpoint committed `minutes` after others.
void make_step(const fs::path& folder, int64_t step, int minutes) {
  const fs::path path = folder / step_folder_name(step);
  fs::create_directories(path);
  spill(path / kManifestFile, "{}");
  fs::last_write_time(path / kManifestFile,
                      fs::file_time_type::clock::now() + std::chrono::minutes(minutes));
}

TEST(StepFolderName, GoesBothWays) {
  EXPECT_EQ(step_folder_name(200), "step-00000200");
  EXPECT_EQ(step_folder_name(1234567890), "step-1234567890");
  EXPECT_THAT(parse_step_folder_name("step-00000200"), Optional(200));
  EXPECT_THAT(parse_step_folder_name("step-1234567890"), Optional(1234567890));
}

TEST(StepFolderName, NothingElseIsOne) {
  for (const char* name :
       {"", "step-", "step-200", "step-00000200.tmp-7", "step-0000020x", "latest",
        "step-0000000200", "step--0000200", "step-00000200/", "Step-00000200"}) {
    EXPECT_EQ(parse_step_folder_name(name), std::nullopt) << name;
  }
}

TEST(CommittedSteps, AreInOrderOfCommit) {
  const TemporaryFolder folder;
  make_step(folder.path(), 300, 1);
  make_step(folder.path(), 100, 2);
  make_step(folder.path(), 200, 3);
  fs::create_directory(folder / "step-00000400.tmp-1");
  fs::create_directory(folder / "step-00000050");  // Nobody finished or kept this one.
  spill(folder / "latest", "step-00000200\n");
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(50, 300, 100, 200));
  EXPECT_THAT(committed_steps(folder / "none"), IsEmpty());
}

TEST(ReadLatest, OnlyTakesACheckpointsName) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_latest(folder.path()), "");
  spill(folder / "latest", "step-00000200\n");
  EXPECT_EQ(read_latest(folder.path()), "step-00000200");
  for (const std::string& text :
       {std::string("../step-00000200"), std::string("step-0000"), std::string(), std::string("\n"),
        std::string("step-00000200\n\n"), std::string(100000, 'x')}) {
    spill(folder / "latest", text);
    EXPECT_EQ(read_latest(folder.path()), "") << text.substr(0, 40);
  }
}

TEST(CleanLeftovers, RemovesWhatTheDeadLeft) {
  const TemporaryFolder folder;
  make_step(folder.path(), 100, 0);
  fs::create_directory(folder / "step-00000200.tmp-12");
  spill(folder / "step-00000200.tmp-12/model.safetensors", "half");
  fs::create_directory(folder / "step-00000050.deleted-12");
  spill(folder / "latest.tmp-12", "step-");
  EXPECT_THAT(clean_leftovers(folder.path()),
              ElementsAre(HasSubstr("latest.tmp-12"), HasSubstr("step-00000050.deleted-12"),
                          HasSubstr("step-00000200.tmp-12")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_THAT(clean_leftovers(folder.path()), IsEmpty());
  EXPECT_THAT(clean_leftovers(folder / "none"), IsEmpty());
}

TEST(CleanLeftovers, LeavesTheLivingAndTheForeignAlone) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "step-00000200.tmp-12");
  File owner(folder / "step-00000200.tmp-12", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(owner.try_lock());
  fs::create_directory(folder / "notes.tmp-12");
  fs::create_directory(folder / "step-00000300.backup");
  EXPECT_THAT(clean_leftovers(folder.path()), IsEmpty());
  EXPECT_TRUE(fs::exists(folder / "step-00000200.tmp-12"));
}

TEST(CleanLeftovers, PutsBackWhatWasCutShortOfBeingReplaced) {
  const TemporaryFolder folder;
  make_step(folder.path(), 100, 0);
  fs::rename(folder / "step-00000100", folder / "step-00000100.replaced-12");
  EXPECT_THAT(clean_leftovers(folder.path()), ElementsAre(HasSubstr("put 'step-00000100' back")));
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(100));
}

TEST(CleanLeftovers, RemovesWhatWasReplaced) {
  const TemporaryFolder folder;
  make_step(folder.path(), 100, 0);
  fs::create_directory(folder / "step-00000100.replaced-12");
  EXPECT_THAT(clean_leftovers(folder.path()), ElementsAre(HasSubstr("removed")));
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(100));
}

TEST(RequireWritable, CreatesTheFolderAndLeavesNothing) {
  const TemporaryFolder folder;
  require_writable(folder / "run/checkpoints");
  EXPECT_TRUE(fs::is_empty(folder / "run/checkpoints"));
}

TEST(RequireWritable, SaysWhyNot) {
  const TemporaryFolder folder;
  spill(folder / "file", "");
  EXPECT_THAT([&] { require_writable(folder / "file/checkpoints"); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("checkpoints cannot be kept"), HasSubstr("Not a directory"))));
}

TEST(RequireWritable, SaysThatPermissionIsMissing) {
  const TemporaryFolder folder;
  const WithoutPrivileges plain_user;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT([&] { require_writable(folder / "checkpoints"); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("Permission denied"), HasSubstr("check the permissions"))));
  fs::permissions(folder.path(), fs::perms::none);
  EXPECT_THAT([&] { require_writable(folder / "checkpoints"); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("Permission denied"), HasSubstr("check the permissions"))));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace phalanx
