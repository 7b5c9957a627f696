// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/unlike_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "trainer/ranks/failures/roll_call.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SignOfLife at(const std::string& activity) { return {.operations = 7, .activity = activity}; }

const std::string kSkips = "step 3, " + activity_before("skips");

TEST(UnlikePasses, AreNamedWhereARankEndsItsStepBesideAPassOfIt) {
  EXPECT_EQ(kSkips, "step 3, before it skips");
  EXPECT_THAT(
      unlike_passes({at("step 3, backward"), at(kSkips)}),
      AllOf(HasSubstr("the ranks run other passes in step 3"), HasSubstr("docs/add_a_task.md")));
  EXPECT_THAT(unlike_passes({at(kSkips), at(kSkips), at("step 3, before it updates")}),
              HasSubstr("in step 3"));
}

TEST(UnlikePasses, AreNotBlamedForOtherFailures) {
  EXPECT_EQ(unlike_passes({at("step 3, backward"), at("step 3, forward")}), "") << "no own step";
  EXPECT_EQ(unlike_passes({at(kSkips), at(kSkips)}), "");
  EXPECT_EQ(unlike_passes({at(kSkips), at("step 4, backward")}), "") << "another step";
  EXPECT_EQ(unlike_passes({at(kSkips), at("saving")}), "");
  EXPECT_EQ(unlike_passes({at("step 3, backward"), at(kSkips), std::nullopt}), "") << "one is gone";
  EXPECT_EQ(unlike_passes({}), "");
}

}  // namespace
}  // namespace phalanx
