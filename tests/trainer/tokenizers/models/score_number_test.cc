// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/score_number.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(ScoreNumber, RoundsTwice) {
  EXPECT_EQ(score_number(-3.5), -3.5);
  EXPECT_EQ(score_number(0.0), 0.0);
  EXPECT_EQ(score_number(1e-320), 1e-320);
  EXPECT_EQ(score_number(1.5e300), 15 * 1e299);
  // 10413266654746877 is no double.
  EXPECT_EQ(score_number(10.413266654746877), 10.413266654746876);
  EXPECT_EQ(score_number(-10.413266654746877), -10.413266654746876);
}

}  // namespace
}  // namespace phalanx
