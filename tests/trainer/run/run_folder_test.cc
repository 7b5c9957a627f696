// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/run/run_lock.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class RunFolder : public CommandTest {
 protected:
  static void expect_refused(const std::string& exp_dir,
                             const ::testing::Matcher<std::string>& message) {
    EXPECT_THAT([&] { require_usable_folder(exp_dir); }, ThrowsMessage<UserError>(message));
  }
};

TEST_F(RunFolder, TheFirstFreeOneIsTaken) {
  EXPECT_EQ(free_run_folder("some"), "runs/some/run_0");
  EXPECT_FALSE(fs::exists("runs")) << "nothing is created";
  fs::create_directories("runs/some/run_0");
  fs::create_directories("runs/some/run_1");
  fs::create_directories("runs/some/run_3");
  EXPECT_EQ(free_run_folder("some"), "runs/some/run_2");
  EXPECT_EQ(free_run_folder("other"), "runs/other/run_0");
}

TEST_F(RunFolder, IsCreatedWithItsParentsOnce) {
  EXPECT_TRUE(create_run_folder("runs/some/run_0"));
  EXPECT_TRUE(fs::is_directory("runs/some/run_0"));
  EXPECT_FALSE(create_run_folder("runs/some/run_0"));
  EXPECT_TRUE(create_run_folder("beside"));
}

TEST_F(RunFolder, OneOfManyWhoWantItGetsIt) {
  constexpr int kRounds = 50;
  constexpr int kThreads = 4;
  std::vector<std::atomic<int>> winners(kRounds);
  std::latch ready(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        for (int round = 0; round < kRounds; ++round) {
          const auto folder = fs::path("runs/raced") / std::to_string(round) / "run_0";
          if (create_run_folder(folder)) ++winners[static_cast<size_t>(round)];
        }
      });
    }
  }
  for (const auto& winner : winners) EXPECT_EQ(winner, 1);
}

TEST_F(RunFolder, AFileInItsPlaceIsAUsersMistake) {
  write("file", "");
  EXPECT_THAT([] { create_run_folder("file/run_0"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("file/run_0"), HasSubstr("exp_dir"))));
}

TEST_F(RunFolder, OneThatIsNotThereOrEmptyOrARunsIsUsable) {
  require_usable_folder("new");
  require_usable_folder("new/deeper/");
  require_usable_folder(dir_.path() / "new");
  fs::create_directory("empty");
  require_usable_folder("empty");
  require_usable_folder("empty/");
  for (const char* beside : {"starts.jsonl", "checkpoints/latest"}) {
    write("run/config.yaml", kConfig);
    write(fs::path("run") / beside, "");
    write("run/notes.txt", "a user's own");
    require_usable_folder("run");
    fs::remove_all("run");
  }
  // Killed before the config was there.
  write("begun/run.lock", "");
  write("begun/starts.jsonl", "{}\n");
  write("begun/ends.jsonl", "{}\n");
  write("begun/config.yaml.tmp-123", "");
  require_usable_folder("begun");
}

TEST_F(RunFolder, OneWithOtherThingsInItIsRefused) {
  expect_refused("tiny.yaml", AllOf(HasSubstr("tiny.yaml is a file"), HasSubstr("exp_dir")));
  expect_refused("", HasSubstr("exp_dir is empty"));
  expect_refused("two\nlines", HasSubstr("control character"));
  write("data/text.txt", "");
  expect_refused("data", AllOf(HasSubstr("data holds other files than a run's (text.txt)"),
                               HasSubstr("choose an exp_dir")));
  for (const char* name : {"a", "b", "c"}) write(fs::path("data") / name, "");
  expect_refused("data", HasSubstr("(a, b, c, ...)"));
  write("runs/a/run_0/config.yaml", kConfig);
  write("runs/a/run_0/starts.jsonl", "");
  write("runs/a/notes", "");
  expect_refused("runs/a", AllOf(HasSubstr("runs/a is a folder of runs (run_0), and no run itself"),
                                 HasSubstr("as in exp_dir=runs/a/run_0; for a new run")));
  // Anybody's: training there would write over it.
  write("project/config.yaml", kConfig);
  expect_refused("project", HasSubstr("(config.yaml)"));
  expect_refused(".", HasSubstr("(data, project, runs, ...)"));
}

TEST_F(RunFolder, OneWithinAnotherRunIsRefused) {
  write("runs/a/run_0/config.yaml", kConfig);
  write("runs/a/run_0/starts.jsonl", "");
  const std::string run = fs::canonical("runs/a/run_0").string();
  for (const char* inside : {"runs/a/run_0/again", "runs/a/run_0/checkpoints/x/y",
                             "runs/a/../a/run_0/again/", "runs/./a/run_0/logs"}) {
    expect_refused(inside, AllOf(HasSubstr("within the folder of another run, " + run),
                                 HasSubstr("to go on with that run, write exp_dir=" + run + ";"),
                                 HasSubstr("exp_dir outside")));
  }
  fs::create_directory_symlink("runs/a/run_0", "link");
  expect_refused("link/again", HasSubstr("within the folder of another run, " + run));
  require_usable_folder("link");
  require_usable_folder("runs/a/run_1");
  // A folder with a config and another's checkpoints below it is no run.
  write("runs/config.yaml", kConfig);
  require_usable_folder("runs/a/run_1");
}

TEST_F(RunFolder, ANewOneBesideOthersMayBeMisspelt) {
  EXPECT_EQ(new_run_beside_others("large"), std::nullopt);
  for (const char* name : {"large", "small", "medium", "huge"}) {
    write(fs::path("runs") / name / "config.yaml", kConfig);
    write(fs::path("runs") / name / "starts.jsonl", "");
  }
  fs::create_directories("runs/larges");
  EXPECT_EQ(new_run_beside_others("runs/lagre/"),
            "runs/lagre/ does not exist: a new run starts there; its parent folder has the runs "
            "huge, large, medium, ...; did you mean exp_dir=runs/large?");
  EXPECT_THAT(*new_run_beside_others("runs/another_one"), HasSubstr("medium, ..."));
  EXPECT_THAT(*new_run_beside_others("runs/another_one"), Not(HasSubstr("did you mean")));
  EXPECT_EQ(new_run_beside_others("runs/large"), std::nullopt);
  EXPECT_EQ(new_run_beside_others("elsewhere/large"), std::nullopt);
}

TEST_F(RunFolder, ARefusalComesBeforeAnythingIsWritten) {
  write("data/text.txt", "");
  for (const char* exp_dir : {"data", "tiny.yaml", ""}) {
    const Outcome outcome = run({"tiny.yaml", "exp_dir=" + std::string(exp_dir)});
    EXPECT_EQ(outcome.code, 2) << outcome.errors;
  }
  EXPECT_THAT(dir_.names("."), ElementsAre("data", "tiny.yaml"));
  EXPECT_THAT(dir_.names("data"), ElementsAre("text.txt"));
}

TEST_F(RunFolder, ARunStartedWithinAnotherOnesFolderIsRefused) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here"}).code, 0);
  fs::current_path("here");
  const Outcome outcome = run({"config.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("start from another folder"));
  EXPECT_FALSE(fs::exists("runs"));
  EXPECT_EQ(run({"config.yaml", "exp_dir=."}).code, 0) << "that is the run itself";
}

TEST_F(RunFolder, AConfigIsFoundByWhatStandsForItsRun) {
  EXPECT_EQ(config_file_of("tiny.yaml"), "tiny.yaml");
  EXPECT_EQ(config_file_of("not_there"), "not_there") << "reading it will say so";
  write("run/config.yaml", kConfig);
  write("run/checkpoints/latest", "step-00000002\n");
  fs::create_directory("run/checkpoints/step-00000002");
  const fs::path config = fs::absolute("run/config.yaml");
  for (const char* path :
       {"run", "run/", "./run/.", "run/checkpoints", "run/checkpoints/", "run/checkpoints/latest",
        "run/checkpoints/step-00000002", "run/checkpoints/step-00000002/"}) {
    EXPECT_EQ(config_file_of(path), config) << path;
  }
  fs::current_path("run/checkpoints");
  EXPECT_EQ(config_file_of("latest"), config);
  EXPECT_EQ(config_file_of("."), config);
  EXPECT_EQ(config_file_of(".."), config);
  fs::create_directory("../logs");
  EXPECT_THAT([] { config_file_of("../logs"); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("../logs is no run"), HasSubstr("logs/config.yaml"))));
}

TEST_F(RunFolder, AnUnfinishedRunIsTold) {
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  EXPECT_EQ(run({"tiny.yaml", "exp_name=tiny", "task.fails_at=6"}).code, 1);
  const auto message = unfinished_run("tiny");
  ASSERT_TRUE(message);
  EXPECT_THAT(*message, AllOf(HasSubstr("runs/tiny/run_0"), HasSubstr("step 4"),
                              HasSubstr("exp_dir=runs/tiny/run_0")));
  EXPECT_EQ(unfinished_run("other"), std::nullopt);
}

TEST_F(RunFolder, TheArgumentThatContinuesItIsQuoted) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name='a,b'", "task.fails_at=6"}).code, 1);
  const auto message = unfinished_run("a,b");
  ASSERT_TRUE(message);
  EXPECT_THAT(*message, HasSubstr("'exp_dir=\"runs/a,b/run_0\"' continues it"));
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=\"runs/a,b/run_0\""}).code, 0);
}

TEST_F(RunFolder, OneThatIsBeingTrainedNeedsNoContinuing) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name=tiny", "task.fails_at=6"}).code, 1);
  std::optional<RunLock> lock(std::in_place, "runs/tiny/run_0");
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  lock.reset();
  EXPECT_TRUE(unfinished_run("tiny"));
}

TEST_F(RunFolder, AFinishedRunIsNot) {
  EXPECT_EQ(run({"tiny.yaml"}).code, 0);
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  // Its last step ends an epoch and is a multiple of save_every_n_steps: 6 of 3 steps an epoch.
  EXPECT_EQ(run({"tiny.yaml", "exp_name=epochs", "training={max_epochs: 2, max_steps: null}"}).code,
            0);
  EXPECT_EQ(unfinished_run("epochs"), std::nullopt);
}

TEST_F(RunFolder, ADamagedEarlierRunDoesNotStopANewOne) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name=tiny", "task.fails_at=6"}).code, 1);
  write("runs/tiny/run_0/config.yaml", "training: [\n");
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  EXPECT_EQ(run({"tiny.yaml"}).code, 0);
  EXPECT_TRUE(fs::exists("runs/tiny/run_1/config.yaml"));
}

}  // namespace
}  // namespace phalanx::tiny
