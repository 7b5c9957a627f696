#include "trainer/config/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::config {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

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
                                                         {"9223372036854775807", kMost}}) {
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

TEST(Size, HasAUnit) {
  for (const auto& [text, bytes, printed] :
       std::vector<std::tuple<const char*, std::int64_t, const char*>>{
           {"0", 0, "0B"},
           {"512B", 512, "512B"},
           {"1024B", 1024, "1KiB"},
           {"25MiB", 25 << 20, "25MiB"},
           {"0.5GiB", 512 << 20, "512MiB"},
           {"1.5GB", 1'500'000'000, "1500MB"},
           {"3kB", 3000, "3kB"},
           {"2TiB", 2LL << 40, "2TiB"},
           {"9223372036854775807B", kMost, "9223372036854775807B"}}) {
    EXPECT_EQ(parse_size(text).value, bytes) << text << parse_size(text).problem;
    EXPECT_EQ(print_size(bytes), printed);
  }
}

TEST(Size, SaysWhatItIsNot) {
  for (const auto& [text, problem] : std::vector<std::pair<const char*, const char*>>{
           {"25", "'25' has no unit; write 25B, or 25MiB, ..."},
           {"25mib", "'25mib' is not a size; write 25MiB"},
           {"25M", "'25M' is not a size; write 25MB or 25MiB"},
           {"-1B", "'-1B' is not a size"},
           {"0.3B", "'0.3B' is no whole number of bytes that fits in 64 bits"},
           {"8388608TiB", "'8388608TiB' is no whole number of bytes that fits in 64 bits"},
           {"", "'' is not a size"}}) {
    EXPECT_EQ(parse_size(text).value, std::nullopt) << text;
    EXPECT_EQ(parse_size(text).problem, problem);
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

TEST(Amount, HasOneOfTheUnits) {
  const std::vector<std::string> units = {"steps", "epochs"};
  EXPECT_EQ(parse_amount("2000steps", units).value, (Amount{2000, "steps"}));
  EXPECT_EQ(parse_amount("1epoch", units).value, (Amount{1, "epochs"}));
  EXPECT_EQ(parse_amount("100ksteps", units).value, (Amount{100'000, "steps"}));
  EXPECT_EQ(print_amount({3, "epochs"}), "3epochs");
  for (const auto& [text, problem] : std::vector<std::pair<const char*, const char*>>{
           {"2000", "'2000' has no unit; write 2000steps or 2000epochs"},
           {"2samples", "'2samples' is not an amount; write 2steps or 2epochs"},
           {"steps", "'steps' is not an amount; write 10steps or 10epochs"},
           {"1.5epochs", "'1.5' is a real number, not an integer"},
           {"-1steps", "'-1steps' is not an amount; write 10steps or 10epochs"}}) {
    EXPECT_EQ(parse_amount(text, units).value, std::nullopt) << text;
    EXPECT_EQ(parse_amount(text, units).problem, problem);
  }
}

}  // namespace
}  // namespace phalanx::config
