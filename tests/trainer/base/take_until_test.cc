// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/take_until.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(TakeUntil, TakesPartsOffTheBeginning) {
  std::string_view text = "a,,bc";
  EXPECT_EQ(take_until(text, ','), "a");
  EXPECT_EQ(take_until(text, ','), "");
  EXPECT_EQ(text, "bc");
  EXPECT_EQ(take_until(text, ','), "bc");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_until(text, ','), "");
}

}  // namespace
}  // namespace phalanx
