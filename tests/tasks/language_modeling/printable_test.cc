// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/printable.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(Printable, KeepsTextAndNewlines) { EXPECT_EQ(printable("To be,\nor not"), "To be,\nor not"); }

TEST(Printable, EscapesControlBytesAndBackslashes) {
  EXPECT_EQ(printable("\t\r\x1b[2J\x7f\\"), "\\x09\\x0d\\x1b[2J\\x7f\\\\");
  EXPECT_EQ(printable(std::string_view("\0a", 2)), "\\x00a");
}

TEST(Printable, KeepsWellFormedUtf8) {
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\x80"), "\\xff\\x80");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // Cut off.
  EXPECT_EQ(printable("\xc3z"), "\\xc3z");                           // Broken off.
  EXPECT_EQ(printable("\xc1\xbf"), "\\xc1\\xbf");                    // Overlong.
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // Half of a surrogate pair.
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // Beyond the last character.
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // A terminal's control sequence.
}

}  // namespace
}  // namespace phalanx
