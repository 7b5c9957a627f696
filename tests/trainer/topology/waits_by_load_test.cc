// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/waits_by_load.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/trainer/host/one_core.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/topology/few_threads.h"
#include "trainer/topology/brief_waits.h"

namespace phalanx {
namespace {

using std::chrono::steady_clock;

TEST(WaitChoice, IsBriefAtOnceAndLongAfterTwoCalmLooks) {
  WaitChoice choice(/*threads=*/2);
  EXPECT_FALSE(choice.choose(2.0));
  EXPECT_FALSE(choice.choose(1.75)) << "what every system does now and then";
  EXPECT_TRUE(choice.choose(1.5));
  EXPECT_TRUE(choice.choose(2.0)) << "calm once";
  EXPECT_TRUE(choice.choose(1.75)) << "neither";
  EXPECT_TRUE(choice.choose(2.0));
  EXPECT_FALSE(choice.choose(2.0));
  EXPECT_FALSE(choice.choose(2.0));
  EXPECT_TRUE(choice.choose(0.0));
}

TEST(WaitChoice, IsLongWhereOthersLeaveACoreForEachThread) {
  WaitChoice choice(/*threads=*/4);
  EXPECT_FALSE(choice.choose(4.0));
  EXPECT_FALSE(choice.choose(60.0));
}

/// A host whose /proc/stat this writes.
class WaitsByLoadTest : public testing::Test {
 protected:
  WaitsByLoadTest() {
    std::filesystem::create_directories(root_ / "proc");
    omp_set_num_threads(2);
    pass(0, 0);
  }
  void SetUp() override {
    if (!BriefWaits::are_possible()) GTEST_SKIP() << "OpenMP's waits are not libgomp's to choose";
  }

  /// So many ticks more of each hardware thread.
  void pass(int64_t busy, int64_t idle) {
    busy_ += busy;
    idle_ += idle;
    std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
    for (int unit = 0; unit < CPU_SETSIZE; ++unit) {
      text += "cpu" + std::to_string(unit) + ' ' + std::to_string(busy_) + " 0 0 " +
              std::to_string(idle_) + " 0 0 0 0 0 0\n";
    }
    spill(root_ / "proc/new", text);
    std::filesystem::rename(root_ / "proc/new", root_ / "proc/stat");
  }

  /// Whether waits become brief, or long, while time passes on this host.
  bool become(const WaitsByLoad& waits, bool brief) {
    const auto end = steady_clock::now() + std::chrono::seconds(60);
    while (waits.are_brief() != brief && steady_clock::now() < end) {
      // Far more than what passes in truth, however busy this machine is.
      brief ? pass(100'000, 0) : pass(0, 100'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return waits.are_brief() == brief;
  }

  const TemporaryFolder root_;

 private:
  int64_t busy_ = 0;
  int64_t idle_ = 0;
};

TEST_F(WaitsByLoadTest, AreBriefWhileOtherProgramsTakeTheCores) {
  if (cores_of_affinity() < 2) GTEST_SKIP() << "two threads have one core: waits stay brief";
  const WaitsByLoad waits({}, root_.path());
  ASSERT_TRUE(waits.is_on());
  EXPECT_TRUE(become(waits, /*brief=*/true));
  EXPECT_TRUE(become(waits, /*brief=*/false));
  EXPECT_TRUE(become(waits, /*brief=*/true));
}

TEST_F(WaitsByLoadTest, CountTheThreadsOfAllRanksOnTheCores) {
  // As many as the cores have room for, and as many again.
  const int cores = cores_of_affinity();
  omp_set_num_threads(std::max(cores, 2));
  const WaitsByLoad waits({getpid(), getpid()}, root_.path());
  const auto end = steady_clock::now() + std::chrono::seconds(60);
  while (!waits.are_brief() && steady_clock::now() < end) {
    pass(0, 100'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(waits.are_brief());
}

TEST_F(WaitsByLoadTest, AreLeftAloneWhereNobodyWaitsOrTheUserHasChosen) {
  omp_set_num_threads(1);
  EXPECT_FALSE(WaitsByLoad({}, root_.path()).is_on());
  omp_set_num_threads(2);
  EXPECT_TRUE(WaitsByLoad({}, root_.path()).is_on());
  for (const char* variable : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) {
    ::setenv(variable, "100", 1);
    EXPECT_FALSE(WaitsByLoad({}, root_.path()).is_on()) << variable;
    ::unsetenv(variable);
  }
}

TEST_F(WaitsByLoadTest, StayLongWhereTheKernelDoesNotTell) {
  std::filesystem::remove(root_ / "proc/stat");
  const WaitsByLoad waits({}, root_.path());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(waits.are_brief());
}

sigset_t signal_mask() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

/// Whether this thread gets signals after it has made waits by load.
bool gets_signals(const std::filesystem::path& root) {
  const WaitsByLoad waits({}, root);
  const sigset_t mask = signal_mask();
  return sigismember(&mask, SIGTERM) == 0 && sigismember(&mask, SIGINT) == 0;
}

TEST_F(WaitsByLoadTest, LeaveSignalsToTheCaller) { EXPECT_TRUE(gets_signals(root_.path())); }

TEST_F(WaitsByLoadTest, AreOffWhereNoThreadCanBeStarted) {
  const auto code = with_few_threads(/*threads=*/0, [&] {
    return !WaitsByLoad({}, root_.path()).is_on() && gets_signals(root_.path());
  });
  if (!code) GTEST_SKIP() << "no limit of threads holds here (RLIMIT_NPROC)";
  EXPECT_EQ(*code, 0);
}

}  // namespace
}  // namespace phalanx
