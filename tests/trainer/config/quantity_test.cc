// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::config {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(Count, IsAnIntegerOrOneInThousands) {
  for (const auto& [text, value] :
       std::vector<std::pair<const char*, std::int64_t>>{{"0", 0},
                                                         {"-3", -3},
                                                         {"+7", 7},
                                                         {"100k", 100'000},
                                                         {"1.5M", 1'500'000},
                                                         {"0.001k", 1},
                                                         {"1.50M", 1'500'000},
                                                         {"2G", 2'000'000'000},
                                                         {"9T", 9'000'000'000'000},
                                                         {"-1k", -1000},
                                                         {"0x10", 16},
                                                         {"9223372036854775807", kMax}}) {
    EXPECT_EQ(parse_count(text).value, value) << text << parse_count(text).problem;
  }
}

TEST(Count, SaysWhatItIsNot) {
  for (const auto& [text, problem] : std::vector<std::pair<const char*, const char*>>{
           {"100K", "'100K' is not an integer, nor one in k, M, G or T; write 100k"},
           {"1m", "'1m' is not an integer, nor one in k, M, G or T; write 1M"},
           {"1B", "'1B' is not an integer, nor one in k, M, G or T"},
           {"1.0001k", "'1.0001k' is no whole number that fits in 64 bits"},
           {"10000000T", "'10000000T' is no whole number that fits in 64 bits"},
           {"1.5", "'1.5' is a real number, not an integer"},
           {"1e5", "'1e5' is a real number; write 100000"},
           {"1_000", "'1_000' is not an integer; write 1000"},
           {"k", "'k' is not an integer"},
           {"1.2.3k", "'1.2.3k' is not an integer, nor one in k, M, G or T"},
           {".k", "'.k' is no whole number that fits in 64 bits"},
           {"", "'' is not an integer"}}) {
    EXPECT_EQ(parse_count(text).value, std::nullopt) << text;
    EXPECT_EQ(parse_count(text).problem, problem);
  }
}

TEST(Duration, HasUnits) {
  for (const auto& [text, time, printed] :
       std::vector<std::tuple<const char*, std::int64_t, const char*>>{
           {"0", 0, "0s"},
           {"90s", 90'000, "90s"},
           {"300s", 300'000, "5m"},
           {"1h30m", 5'400'000, "90m"},
           {"1.5s", 1500, "1500ms"},
           {"2d", 172'800'000, "2d"},
           {"1d2h3m4s5ms", 93'784'005, "93784005ms"}}) {
    EXPECT_EQ(parse_duration(text).value, milliseconds(time)) << text;
    EXPECT_EQ(print_duration(milliseconds(time)), printed);
  }
}

TEST(Duration, SaysWhatItIsNot) {
  for (const auto& [text, problem] : std::vector<std::pair<const char*, const char*>>{
           {"300", "'300' has no unit; write 300s, or 300m, ..."},
           {"5min", "'5min' is not a duration; write 5m"},
           {"5M", "'5M' is not a duration; write 5m"},
           {"1hour 30mins", "'1hour 30mins' is not a duration; write 1h30m"},
           {"5x", "'5x' is not a duration"},
           {"5 m", "'5 m' is not a duration; write 5m"},
           {"-5m", "'-5m' is not a duration"},
           {"5s1m", "'5s1m' is not a duration: its units go from large to small, each once"},
           {"1m1m", "'1m1m' is not a duration: its units go from large to small, each once"},
           {"1h30", "'1h30' has no unit; write 1h30s, or 1h30m, ..."},
           {"1.0001s", "'1.0001s' is no whole number of milliseconds that fits in 64 bits"},
           {"99999999999999999d",
            "'99999999999999999d' is no whole number of milliseconds that fits in 64 bits"},
           {"", "'' is not a duration"}}) {
    EXPECT_EQ(parse_duration(text).value, std::nullopt) << text;
    EXPECT_EQ(parse_duration(text).problem, problem);
  }
}

}  // namespace
}  // namespace phalanx::config
