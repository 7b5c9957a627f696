// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/terminal_width.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>

#include "trainer/base/descriptor.h"

namespace phalanx {
namespace {

class TerminalWidth : public testing::Test {
 protected:
  void SetUp() override { ::setenv("COLUMNS", "60", 1); }
  void TearDown() override { ::unsetenv("COLUMNS"); }

  /// The width of a terminal that says so many columns.
  static std::size_t width_at(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int user = -1;
    int program = -1;
    EXPECT_EQ(::openpty(&user, &program, nullptr, nullptr, &size), 0);
    const Descriptor users_end(user);
    const Descriptor programs_end(program);
    return terminal_width(program);
  }

  Pipe pipe_ = make_pipe();
};

TEST_F(TerminalWidth, IsWhatTheTerminalSays) { EXPECT_EQ(width_at(132), 132U); }

TEST_F(TerminalWidth, IsTheEnvironmentsWhereNoTerminalSaysOne) {
  EXPECT_EQ(width_at(0), 60U);
  EXPECT_EQ(terminal_width(pipe_.write_end.number()), 60U);
}

TEST_F(TerminalWidth, IsEightyWhereNobodySaysOneThatCanBe) {
  for (const char* columns : {"", "wide", "0", "-5", "19", "1001", "100x"}) {
    ::setenv("COLUMNS", columns, 1);
    EXPECT_EQ(terminal_width(pipe_.write_end.number()), 80U) << "COLUMNS=" << columns;
  }
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal_width(pipe_.write_end.number()), 80U);
}

}  // namespace
}  // namespace phalanx
