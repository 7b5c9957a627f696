// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/scalar.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace phalanx::config {
namespace {

TEST(ParseInteger, ReadsTheCoreSchema) {
  EXPECT_EQ(parse_integer("0").value, 0);
  EXPECT_EQ(parse_integer("-12").value, -12);
  EXPECT_EQ(parse_integer("+12").value, 12);
  EXPECT_EQ(parse_integer("0x1F").value, 31);
  EXPECT_EQ(parse_integer("0o17").value, 15);
  EXPECT_EQ(parse_integer("9223372036854775807").value, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_integer("-9223372036854775808").value, std::numeric_limits<std::int64_t>::min());
}

TEST(ParseInteger, SaysWhatIsWrongAndWhatToWrite) {
  EXPECT_EQ(parse_integer("abc").problem, "'abc' is not an integer");
  EXPECT_EQ(parse_integer("").problem, "'' is not an integer");
  EXPECT_EQ(parse_integer("-").problem, "'-' is not an integer");
  EXPECT_EQ(parse_integer("--1").problem, "'--1' is not an integer");
  EXPECT_EQ(parse_integer("1 2").problem, "'1 2' is not an integer");
  EXPECT_EQ(parse_integer("0x").problem, "'0x' is not an integer");
  EXPECT_EQ(parse_integer("0x-1").problem, "'0x-1' is not an integer");
  EXPECT_EQ(parse_integer("0o8").problem, "'0o8' is not an integer");
  EXPECT_EQ(parse_integer("1e3").problem, "'1e3' is a real number; write 1000");
  EXPECT_EQ(parse_integer("2.0").problem, "'2.0' is a real number; write 2");
  EXPECT_EQ(parse_integer("2.5").problem, "'2.5' is a real number, not an integer");
  EXPECT_EQ(parse_integer("1e30").problem, "'1e30' is a real number, not an integer");
  EXPECT_EQ(parse_integer("1_000").problem, "'1_000' is not an integer; write 1000");
  EXPECT_EQ(parse_integer("010").problem,
            "'010' has a leading zero; write 10 (or 0o... for an octal number)");
  EXPECT_EQ(parse_integer("00").problem,
            "'00' has a leading zero; write 0 (or 0o... for an octal number)");
  EXPECT_EQ(parse_integer("9223372036854775808").problem,
            "'9223372036854775808' does not fit in 64 bits");
  EXPECT_EQ(parse_integer("0xFFFFFFFFFFFFFFFF").problem,
            "'0xFFFFFFFFFFFFFFFF' does not fit in 64 bits");
}

TEST(ParseReal, ReadsTheCoreSchema) {
  EXPECT_EQ(parse_real("1e-4").value, 1e-4);
  EXPECT_EQ(parse_real("+1.5E+3").value, 1500.0);
  EXPECT_EQ(parse_real("-.5").value, -0.5);
  EXPECT_EQ(parse_real("5.").value, 5.0);
  EXPECT_EQ(parse_real("7").value, 7.0);
  EXPECT_EQ(parse_real(".inf").value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_real("-.inf").value, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_real(".nan").value.value()));
}

TEST(ParseReal, RefusesWhatIsNone) {
  for (const char* text :
       {"", ".", "e5", "1e", "1e+", "inf", "nan", "0x1p3", "1,5", "1.2.3", "1 "}) {
    EXPECT_FALSE(parse_real(text).value.has_value()) << text;
  }
  EXPECT_EQ(parse_real("1_000").problem, "'1_000' is not a real number; write 1000");
  EXPECT_EQ(parse_real("-007").problem, "'-007' has a leading zero; write -7");
  EXPECT_EQ(parse_real("9007199254740992").value, 0x1p53);
  EXPECT_EQ(parse_real("-9007199254740993").problem,
            "'-9007199254740993' has more digits than a double holds; write -9007199254740992");
  EXPECT_EQ(parse_real("9007199254740993.0").value, 0x1p53);  // may be rounded, as 0.1 is
  EXPECT_EQ(parse_real("1e400").problem, "'1e400' is beyond the range of a double");
  EXPECT_EQ(parse_real("1e-400").problem, "'1e-400' is too small for a double; write 0");
}

TEST(ParseBoolean, TakesTrueAndFalseOnly) {
  EXPECT_EQ(parse_boolean("true").value, true);
  EXPECT_EQ(parse_boolean("false").value, false);
  for (const char* text : {"yes", "on", "True", "TRUE", "y", "1"}) {
    EXPECT_EQ(parse_boolean(text).problem,
              "'" + std::string(text) + "' is not true or false; write true");
  }
  for (const char* text : {"no", "off", "False", "FALSE", "n", "0"}) {
    EXPECT_EQ(parse_boolean(text).problem,
              "'" + std::string(text) + "' is not true or false; write false");
  }
  EXPECT_EQ(parse_boolean("maybe").problem, "'maybe' is not true or false");
}

TEST(PrintReal, HasAPointForReadersThatNeedOne) {
  EXPECT_EQ(print_real(0), "0.0");
  EXPECT_EQ(print_real(-0.0), "-0.0");
  EXPECT_EQ(print_real(1), "1.0");
  EXPECT_EQ(print_real(0.001), "0.001");
  EXPECT_EQ(print_real(1e-4), "1.0e-04");
  EXPECT_EQ(print_real(1e22), "1.0e+22");
  EXPECT_EQ(print_real(std::numeric_limits<double>::infinity()), ".inf");
  EXPECT_EQ(print_real(-std::numeric_limits<double>::infinity()), "-.inf");
  EXPECT_EQ(print_real(std::numeric_limits<double>::quiet_NaN()), ".nan");
}

TEST(PrintReal, ReadsBackToTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isnan(value)) continue;
    const auto parsed = parse_real(print_real(value));
    ASSERT_TRUE(parsed.value.has_value()) << parsed.problem;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(*parsed.value), std::bit_cast<std::uint64_t>(value));
  }
}

}  // namespace
}  // namespace phalanx::config
