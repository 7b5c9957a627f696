// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/value_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace phalanx {
namespace {

using ::testing::ElementsAre;

TEST(ValueLines, StandInAColumn) {
  EXPECT_THAT(value_lines({{{"loss", 2.5}, {"perplexity", 12}}}),
              ElementsAre("  loss            2.5\n  perplexity      12\n"));
}

TEST(ValueLines, KeepNumbersApartFromLongNames) {
  EXPECT_THAT(value_lines({{{"loss", 2.5}, {"macro_average_f1", 0.5}},
                           {{"root_mean_squared_error", -std::nan("")}}}),
              ElementsAre("  loss                     2.5\n  macro_average_f1         0.5\n",
                          "  root_mean_squared_error  nan\n"));
}

}  // namespace
}  // namespace phalanx
