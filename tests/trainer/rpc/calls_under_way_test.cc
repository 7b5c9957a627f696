// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/calls_under_way.h"

#include <gtest/gtest.h>

namespace phalanx::rpc {
namespace {

TEST(CallsUnderWay, NamesWhatHasNotBeenAnswered) {
  CallsUnderWay calls;
  EXPECT_EQ(calls.text(), "");
  calls.begin("worker 'a' (rank 1)", "pull");
  calls.begin("worker 'a' (rank 1)", "pull");
  calls.begin("worker 'b' (rank 2)", "push");
  EXPECT_EQ(calls.text(), "'pull' of worker 'a' (rank 1), 2 times; 'push' of worker 'b' (rank 2)");
  calls.end("worker 'a' (rank 1)", "pull");
  EXPECT_EQ(calls.text(), "'pull' of worker 'a' (rank 1); 'push' of worker 'b' (rank 2)");
  calls.end("worker 'a' (rank 1)", "pull");
  calls.end("worker 'b' (rank 2)", "push");
  EXPECT_EQ(calls.text(), "");
}

}  // namespace
}  // namespace phalanx::rpc
