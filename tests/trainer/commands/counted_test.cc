// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/counted.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(Counted, HasAnEndingUnlessItIsOne) {
  EXPECT_EQ(counted(0, "tensor"), "0 tensors");
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(2, "tensor"), "2 tensors");
}

}  // namespace
}  // namespace phalanx
