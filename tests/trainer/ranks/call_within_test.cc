// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/call_within.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <stdexcept>
#include <string>

namespace phalanx {
namespace {

constexpr auto kLong = std::chrono::minutes(1);

TEST(CallWithin, ReturnsWhatTheFunctionReturns) {
  EXPECT_EQ(call_within<std::string>(kLong, [] { return "done"; }), "done");
}

TEST(CallWithin, RethrowsWhatTheFunctionThrows) {
  EXPECT_THROW(call_within<int>(kLong, []() -> int { throw std::invalid_argument("no"); }),
               std::invalid_argument);
}

TEST(CallWithin, GivesUpAFunctionThatIsLate) {
  const auto released = std::make_shared<std::latch>(1);
  const auto ended = std::make_shared<std::latch>(1);
  const auto late = call_within<int>(std::chrono::milliseconds(10), [=] {
    released->wait();
    ended->count_down();
    return 1;
  });
  EXPECT_EQ(late, std::nullopt);
  released->count_down();
  ended->wait();  // it stayed behind and had all it needs
}

}  // namespace
}  // namespace phalanx
