// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/stop_signal.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "trainer/base/stop_wait.h"

namespace phalanx {
namespace {

int told = 0;

class StopSignalTest : public testing::Test {
 protected:
  void SetUp() override {
    told = 0;
    StopSignal::when_first([] { ++told; });
    StopSignal::install();
  }
  void TearDown() override {
    StopSignal::when_first(nullptr);
    for (const int signal : StopSignal::kSignals) std::signal(signal, SIG_DFL);
  }
};

TEST_F(StopSignalTest, TellsOfTheFirstOneAlone) {
  std::raise(SIGTERM);
  EXPECT_EQ(told, 1);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(StopSignal::received(), SIGTERM);
}

TEST_F(StopSignalTest, TellsOfItsOwnAlsoWhereAnotherRanksCameFirst) {
  StopSignal::adopt(SIGTERM);
  EXPECT_EQ(told, 0);
  std::raise(SIGINT);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(StopSignal::received(), SIGTERM);
}

TEST_F(StopSignalTest, ASecondInterruptEndsTheProcess) {
  EXPECT_EXIT(
      {
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopWait, IsTheInnermost) {
  const std::string outside = StopWait::present();
  {
    const StopWait step("this step");
    EXPECT_STREQ(StopWait::present(), "this step");
    {
      const StopWait save("this checkpoint");
      EXPECT_STREQ(StopWait::present(), "this checkpoint");
    }
    EXPECT_STREQ(StopWait::present(), "this step");
  }
  EXPECT_EQ(StopWait::present(), outside);
}

}  // namespace
}  // namespace phalanx
