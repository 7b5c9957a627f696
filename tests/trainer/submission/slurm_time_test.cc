// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/slurm_time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace phalanx {
namespace {

TEST(SecondsOfLimit, ReadsEveryFormOfSbatch) {
  using Case = std::pair<std::string_view, int64_t>;
  for (const auto& [limit, seconds] :
       {Case{"1", 60}, Case{"90", 5400}, Case{"2:30", 150}, Case{"12:00:05", 43205},
        Case{"1-12", 129600}, Case{"1-0:30", 88200}, Case{"2-01:01:01", 176461}}) {
    EXPECT_EQ(seconds_of_limit(limit), seconds) << limit;
  }
}

TEST(SecondsOfLimit, IsNothingWithoutALimit) {
  for (const std::string_view limit :
       {"0", "UNLIMITED", "infinite", "", "1:", ":1", "1 hour", "-1", "1:2:3:4", "1-2:3:4:5"}) {
    EXPECT_EQ(seconds_of_limit(limit), std::nullopt) << limit;
  }
}

}  // namespace
}  // namespace phalanx
