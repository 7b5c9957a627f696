// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_progress.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

namespace phalanx {
namespace {

void in_child_that_is_killed(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(RunProgress, StaysHoweverARankEnds) {
  RunProgress progress;
  EXPECT_FALSE(progress.begun());
  in_child_that_is_killed([&] {
    progress.begin(
        {.exp_dir = "runs/a/run_0", .number = 3, .step = 20, .checkpoint = "step-00000020"});
  });
  const auto begun = progress.begun();
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->exp_dir, "runs/a/run_0");
  EXPECT_EQ(begun->number, 3);
  EXPECT_EQ(begun->step, 20);
  EXPECT_EQ(begun->checkpoint, "step-00000020");
  EXPECT_EQ(progress.step(), 20);
  in_child_that_is_killed([&] { progress.reach(21); });
  EXPECT_EQ(progress.step(), 21);
}

TEST(RunProgress, TheFirstBeginningCounts) {
  RunProgress progress;
  progress.begin({.exp_dir = "a", .number = 1, .step = 0, .checkpoint = ""});
  progress.reach(4);
  progress.begin({.exp_dir = "b", .number = 2, .step = 0, .checkpoint = ""});
  EXPECT_EQ(progress.begun()->exp_dir, "a");
  EXPECT_EQ(progress.step(), 4);
}

TEST(RunProgress, TellsWhetherTheCheckpointWasLoaded) {
  RunProgress progress;
  progress.begin({.exp_dir = "a", .number = 1, .step = 4, .checkpoint = ""});
  EXPECT_FALSE(progress.has_restored());
  in_child_that_is_killed([&] { progress.note_restored(); });
  EXPECT_TRUE(progress.has_restored());
  progress.forget();
  EXPECT_FALSE(progress.has_restored());
  progress.begin({.exp_dir = "a", .number = 2, .step = 4, .checkpoint = ""});
  EXPECT_FALSE(progress.has_restored());
  progress.reach(5);
  EXPECT_TRUE(progress.has_restored());
}

TEST(RunProgress, TellsWhyARunHasEndedEarly) {
  RunProgress progress;
  EXPECT_EQ(progress.early_end(), "");
  in_child_that_is_killed([&] { progress.note_early_end("loss is nan"); });
  EXPECT_EQ(progress.early_end(), "loss is nan");
  progress.note_early_end(std::string(5000, 'x'));
  EXPECT_EQ(progress.early_end(), std::string(1023, 'x'));
  progress.forget();
  EXPECT_EQ(progress.early_end(), "");
}

TEST(RunProgress, APathLongerThanAnyIsNone) {
  RunProgress progress;
  progress.begin({.exp_dir = std::string(10000, 'x'), .number = 1, .step = 0, .checkpoint = ""});
  EXPECT_FALSE(progress.begun());
}

}  // namespace
}  // namespace phalanx
