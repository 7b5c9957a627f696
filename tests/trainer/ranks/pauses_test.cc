// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/pauses.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace phalanx {
namespace {

using std::chrono::seconds;

constexpr PauseLog::Clock::time_point kStart{};

// Looks each second, up to `end` seconds from the start.
PauseLog looks_until(int end) {
  PauseLog log(seconds(1), seconds(2), kStart);
  for (int second = 1; second <= end; ++second) log.look(kStart + seconds(second));
  return log;
}

TEST(PauseLog, HasNoneWhereLooksComeInTime) {
  EXPECT_EQ(looks_until(100).pause_within(seconds(50), kStart + seconds(101)), std::nullopt);
}

TEST(PauseLog, TakesNoShortDelayForAPause) {
  PauseLog log = looks_until(10);
  log.look(kStart + seconds(12));
  EXPECT_EQ(log.pause_within(seconds(50), kStart + seconds(13)), std::nullopt);
}

TEST(PauseLog, KnowsAPauseThatNoLookHasNoticed) {
  EXPECT_EQ(looks_until(10).pause_within(seconds(5), kStart + seconds(21)), seconds(10));
}

TEST(PauseLog, KeepsAPauseForAWhile) {
  PauseLog log = looks_until(10);
  log.look(kStart + seconds(21));
  log.look(kStart + seconds(22));
  EXPECT_EQ(log.pause_within(seconds(5), kStart + seconds(22)), seconds(10));
  EXPECT_EQ(log.pause_within(seconds(5), kStart + seconds(24)), seconds(10));
  for (int second = 23; second <= 27; ++second) log.look(kStart + seconds(second));
  EXPECT_EQ(log.pause_within(seconds(5), kStart + seconds(27)), std::nullopt);
}

TEST(PauseLog, PrefersTheNewestPause) {
  PauseLog log = looks_until(10);
  log.look(kStart + seconds(31));
  log.look(kStart + seconds(36));
  EXPECT_EQ(log.pause_within(seconds(20), kStart + seconds(36)), seconds(4));
}

TEST(PauseLog, IsBlamedForWhatFailsRightAfterALongPause) {
  PauseLog log = looks_until(10);
  log.look(kStart + seconds(50));
  EXPECT_EQ(log.pause_to_blame(seconds(60), kStart + seconds(51)), seconds(39));
  EXPECT_EQ(log.pause_to_blame(seconds(100), kStart + seconds(51)), std::nullopt) << "too short";
  for (int second = 51; second <= 80; ++second) log.look(kStart + seconds(second));
  EXPECT_EQ(log.pause_to_blame(seconds(60), kStart + seconds(80)), std::nullopt)
      << "another cause, though within the time that others wait";
}

TEST(PauseWatch, SeesNoPauseOfAProcessThatRuns) {
  EXPECT_EQ(PauseWatch().pause_to_blame(seconds(0)), std::nullopt);
}

}  // namespace
}  // namespace phalanx
