// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/bounded_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace phalanx {
namespace {

TEST(BoundedText, IsWhatWasAdded) {
  BoundedText<64> text;
  text << "step " << 0 << ", " << -12 << ", " << std::numeric_limits<int64_t>::min();
  EXPECT_EQ(text.view(), "step 0, -12, -9223372036854775808");
}

TEST(BoundedText, LeavesOutWhatDoesNotFit) {
  BoundedText<8> text;
  text << "12345" << 678 << "9" << 10;
  EXPECT_EQ(text.view(), "12345678");
}

}  // namespace
}  // namespace phalanx
