// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

TEST(NodeList, IsExpandedInItsOrder) {
  EXPECT_THAT(expand_node_list("n1"), ElementsAre("n1"));
  EXPECT_THAT(expand_node_list("n[1-3,07],m1"), ElementsAre("n1", "n2", "n3", "n07", "m1"));
  EXPECT_THAT(expand_node_list("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(expand_node_list("r[1-2]n[0-1]x"), ElementsAre("r1n0x", "r1n1x", "r2n0x", "r2n1x"));
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* list : {"", ",", "n[", "n[]", "n[1-", "n[a]", "n[2-1]", "n[1-9999999999]",
                           "n[-1]", "n[0-9999]m[0-9999]"}) {
    EXPECT_THROW(expand_node_list(list), UserError) << list;
  }
}

TEST(TaskCounts, AreExpanded) {
  EXPECT_THAT(expand_task_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_task_counts("4"), ElementsAre(4));
  EXPECT_THAT(expand_task_counts("2,1"), ElementsAre(2, 1));
  for (const char* counts : {"", "x", "2(x", "2(3)", "2(x99999999)", "-1"}) {
    EXPECT_THROW(expand_task_counts(counts), UserError) << counts;
  }
}

}  // namespace
}  // namespace phalanx
