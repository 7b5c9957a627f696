// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/brief_waits.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/trainer/host/one_core.h"
#include "tests/trainer/topology/few_threads.h"

namespace phalanx {
namespace {

class BriefWaitsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!BriefWaits::are_possible()) GTEST_SKIP() << "OpenMP's waits are not libgomp's to choose";
  }
};

double cpu_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

/// CPU time of a thread that waits for another one, which sleeps: the median of several waits. How
/// many rounds a thread spins does not depend on what else this machine does.
double cost_of_wait() {
  std::array<double, 7> costs{};
  for (double& cost : costs) {
    const double before = cpu_milliseconds();
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    cost = cpu_milliseconds() - before;
  }
  std::ranges::sort(costs);
  return costs[costs.size() / 2];
}

TEST_F(BriefWaitsTest, CostLessThanHalf) {
  if (cores_of_affinity() < 2) GTEST_SKIP() << "libgomp has waits brief: two threads, one core";
  constexpr int kAttempts = 3;
  double own = 0;
  double brief = 0;
  double after = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    BriefWaits waits;
    own = cost_of_wait();
    ASSERT_TRUE(waits.start());
    EXPECT_TRUE(waits.are_brief());
    brief = cost_of_wait();
    waits.end();
    EXPECT_FALSE(waits.are_brief());
    after = cost_of_wait();
    if (brief < own / 2 && brief < after / 2) return;
  }
  if (own < 0.2) GTEST_SKIP() << "threads of OpenMP do not spin here: " << own << " ms a wait";
  FAIL() << "milliseconds of CPU time a wait: " << own << ", brief " << brief << ", then " << after;
}

TEST_F(BriefWaitsTest, BeginAndEndAgainAndAgain) {
  BriefWaits waits;
  waits.end();
  for (int time = 0; time < 5; ++time) {
    EXPECT_TRUE(waits.start());
    EXPECT_TRUE(waits.start()) << "they are";
    waits.end();
    waits.end();
  }
  EXPECT_TRUE(waits.start());
}  // they end with their object

// libgomp ends the process where it cannot create a thread of a team.
TEST_F(BriefWaitsTest, AreNotTriedWhereThreadsCannotBeStarted) {
  constexpr int kThreads = 1;  // the first one, which the team would be of
  const auto code = with_few_threads(kThreads, [] {
    BriefWaits waits;
    return !waits.start() && !waits.start() && !waits.are_brief();
  });
  if (!code) GTEST_SKIP() << "no limit of threads holds here (RLIMIT_NPROC)";
  EXPECT_EQ(*code, 0);
}

TEST_F(BriefWaitsTest, AreOffWhereTheUserHasChosen) {
  for (const char* variable : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_STACKSIZE"}) {
    ::setenv(variable, "1", 1);
    EXPECT_FALSE(BriefWaits::are_possible()) << variable;
    EXPECT_FALSE(BriefWaits().start()) << variable;
    ::unsetenv(variable);
  }
}

TEST_F(BriefWaitsTest, KnowTheThreadsOfOpenMp) {
  omp_set_num_threads(3);
  EXPECT_EQ(openmp_threads(), 3);
}

}  // namespace
}  // namespace phalanx
