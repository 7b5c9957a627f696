// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace phalanx {
namespace {

using std::chrono::milliseconds;

TEST(TimerTest, CallsInOrderOfTheirTimes) {
  std::vector<int> called;
  std::promise<void> done;
  Timer timer;
  const auto now = Timer::Clock::now();
  timer.at(now + milliseconds(40), [&] {
    called.push_back(2);
    done.set_value();
  });
  timer.at(now + milliseconds(20), [&] { called.push_back(1); });
  timer.at(now - milliseconds(1), [&] { called.push_back(0); });
  done.get_future().wait();
  EXPECT_GE(Timer::Clock::now() - now, milliseconds(40));
  EXPECT_THAT(called, ::testing::ElementsAre(0, 1, 2));
}

TEST(TimerTest, CallsWhatIsLeftWhenItEnds) {
  int called = 0;
  const auto now = Timer::Clock::now();
  {
    Timer timer;
    timer.at(now + std::chrono::hours(1), [&] { ++called; });
  }
  EXPECT_EQ(called, 1);
  EXPECT_LT(Timer::Clock::now() - now, std::chrono::minutes(1));
}

TEST(TimerTest, NeedsNoThreadForNothing) { const Timer timer; }

}  // namespace
}  // namespace phalanx
