// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/file_size_limit.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/io/without_privileges.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string save_error(const fs::path& folder, const Snapshot& snapshot) {
  try {
    save_checkpoint(folder, snapshot);
  } catch (const SaveError& error) {
    return error.what();
  }
  return "saved";
}

constexpr fs::perms kReadOnly = fs::perms::owner_read | fs::perms::owner_exec;

// Calls `action` while no file may grow beyond `bytes`, as on a full disk.
template <class Action>
auto with_file_size_limit(rlim_t bytes, Action action) {
  const FileSizeLimit limit(bytes);
  return action();
}

TEST(FailingSave, LeavesThePreviousCheckpointAndNothingElseWhereverItFails) {
  const TemporaryFolder folder;
  ExampleRun run;
  save_checkpoint(folder.path(), run.snapshot(1));
  const Snapshot next = run.snapshot(2);
  // Limits that stop it at different places of the files.
  int failures = 0;
  for (rlim_t limit = 0; limit < 5000; limit += 97) {
    const std::string message =
        with_file_size_limit(limit, [&] { return save_error(folder.path(), next); });
    if (message == "saved") continue;
    ++failures;
    EXPECT_THAT(message, AllOf(HasSubstr("cannot write"), HasSubstr("File too large"),
                               HasSubstr("step-00000002.tmp-"), HasSubstr("ulimit -f")));
    ASSERT_THAT(names_in(folder.path()), UnorderedElementsAre("step-00000001", "latest"));
    ASSERT_EQ(load_newest(folder.path()).step, 1);
  }
  EXPECT_GT(failures, 20);
  EXPECT_EQ(save_error(folder.path(), next), "saved");
}

TEST(FailingSave, AReadOnlyFolderSaysSo) {
  const TemporaryFolder folder;
  const WithoutPrivileges plain_user;
  ExampleRun run;
  save_checkpoint(folder.path(), run.snapshot(1));
  fs::permissions(folder.path(), kReadOnly);
  const std::string message = save_error(folder.path(), run.snapshot(2));
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_THAT(message, AllOf(HasSubstr("Permission denied"), HasSubstr("check the permissions")));
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("step-00000001", "latest"));
}

TEST(FailingSave, AFileInPlaceOfTheFolderSaysSo) {
  const TemporaryFolder folder;
  ExampleRun run;
  spill(folder / "checkpoints", "");
  EXPECT_THAT(save_error(folder / "checkpoints", run.snapshot(1)), HasSubstr("Not a directory"));
}

TEST(FailingSave, AnOldCheckpointThatCannotBeRemovedIsAWarning) {
  const TemporaryFolder folder;
  const WithoutPrivileges plain_user;
  ExampleRun run;
  const SavedCheckpoint old = save_checkpoint(folder.path(), run.snapshot(1));
  fs::permissions(old.path, kReadOnly);
  const SavedCheckpoint saved =
      save_checkpoint(folder.path(), run.snapshot(2), {.retention = {.keep_last = 1}});
  EXPECT_THAT(saved.warnings, testing::ElementsAre(AllOf(HasSubstr("an old checkpoint stays"),
                                                         HasSubstr("Permission denied"))));
  EXPECT_EQ(load_newest(folder.path()).step, 2);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.is_directory()) fs::permissions(entry, fs::perms::owner_all);
  }
}

// Has this very process killed as by kill -9, in `delay`.
void kill_oneself_in(std::chrono::microseconds delay) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_nsec = std::chrono::nanoseconds(delay).count();
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      ::timer_settime(timer, 0, &when, nullptr) != 0) {
    std::_Exit(4);
  }
}

// Saves steps beyond `step` as fast as it can and reports each to `report`. It is killed at some
// moment after the first.
[[noreturn]] void save_until_killed(const fs::path& folder, int64_t step, int report,
                                    std::chrono::microseconds delay) {
  ExampleRun run;
  for (bool first = true;; first = false) {
    ++step;
    save_checkpoint(folder, run.snapshot(step), {.retention = {.keep_last = 2}});
    if (::write(report, &step, sizeof(step)) != sizeof(step)) std::_Exit(3);
    if (first) kill_oneself_in(delay);
  }
}

// The last step that a child reported before its end.
int64_t last_reported(int pipe, int64_t otherwise) {
  int64_t step = otherwise;
  while (::read(pipe, &step, sizeof(step)) == sizeof(step)) {
  }
  return step;
}

TEST(KilledSave, AtAnyMomentLeavesTheNewestCommittedCheckpoint) {
  const TemporaryFolder folder;
  std::mt19937 random(12);
  int64_t step = 0;
  int kills_within_a_save = 0;
  for (int round = 0; round < 60; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const std::chrono::microseconds delay(1 + random() % 50'000);
    const pid_t child = ::fork();
    if (child == 0) save_until_killed(folder.path(), step, pipe[1], delay);
    ::close(pipe[1]);
    const int64_t reported = last_reported(pipe[0], -1);
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;

    kills_within_a_save += clean_leftovers(folder.path()).empty() ? 0 : 1;
    const FoundRun found = load_newest(folder.path());
    EXPECT_THAT(found.warnings, IsEmpty());
    step = found.step;
    EXPECT_GE(step, reported);
    EXPECT_LE(step, reported + 1);
    EXPECT_TRUE(found.is_whole);
    // `latest` itself names a whole checkpoint too, if not always this one.
    EXPECT_NO_THROW(verify_checkpoint(folder.path() / read_latest(folder.path())));
    EXPECT_LE(committed_steps(folder.path()).size(), 3U);
  }
  EXPECT_GT(kills_within_a_save, 10);
}

// Leaves `free` bytes on a small disk.
void fill_up_to(const fs::path& disk, uint64_t free) {
  fs::remove(disk / "ballast");
  const uint64_t size = fs::space(disk).available - free;
  File(disk / "ballast", O_WRONLY | O_CREAT).write(std::string(size, 'x'));
}

constexpr int kNoSmallDisk = 77;

// What a process with a disk of its own finds when that has ever more space left; 0 if all is well.
int save_on_a_full_disk(const fs::path& disk) {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    return kNoSmallDisk;
  }
  constexpr uint64_t kPage = 4096;
  ExampleRun run;
  save_checkpoint(disk, run.snapshot(1));
  // In turn the model, the optimizer, the generator's state, the manifest and `latest` do not fit.
  uint64_t free = 0;
  for (;; free += kPage) {
    fill_up_to(disk, free);
    const std::string message = save_error(disk, run.snapshot(2));
    if (load_newest(disk).step < 1 || !clean_leftovers(disk).empty()) return 1;
    if (message == "saved") break;
    if (message.find("No space left on device; free some space") == std::string::npos) return 2;
  }
  if (free < 6 * kPage) return 3;
  const FoundRun found = load_newest(disk);
  return found.step == 2 && found.is_whole ? 0 : 4;
}

TEST(FailingSave, AFullDiskSaysSoAndKeepsWhatWasCommitted) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(save_on_a_full_disk(folder.path()));
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoSmallDisk) {
    GTEST_SKIP() << "this user may not mount a small disk; the limit on file sizes stands for it";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace phalanx
