// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/columns.h"

namespace phalanx {
namespace {

using ::testing::StartsWith;

// Sets a variable of the environment, or unsets it; undone at the end of its life.
class Variable {
 public:
  Variable(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(before_); }

 private:
  void set(const std::optional<std::string>& value) {
    if (value) {
      setenv(name_, value->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

// A terminal of so many columns, at its program's end.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (openpty(&user_, &program_, nullptr, nullptr, &size) != 0) throw std::runtime_error("pty");
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    close(user_);
    close(program_);
  }

  int descriptor() const { return program_; }

 private:
  int user_ = -1;
  int program_ = -1;
};

// Neither a terminal nor closed.
class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) throw std::runtime_error("pipe");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }

  int descriptor() const { return ends_[1]; }

 private:
  int ends_[2] = {-1, -1};
};

class TerminalTest : public ::testing::Test {
 protected:
  Variable columns_{"COLUMNS", std::nullopt};
  Variable no_color_{"NO_COLOR", std::nullopt};
  Variable term_{"TERM", "xterm"};
  Pipe pipe_;
};

TEST_F(TerminalTest, APageIsAsWideAsItsTerminal) {
  const Variable columns("COLUMNS", "60");
  EXPECT_EQ(page_style(Terminal(132).descriptor()).width, 132U);
  EXPECT_EQ(page_style(Terminal(0).descriptor()).width, 60U) << "a terminal that does not say";
}

TEST_F(TerminalTest, ElsewhereAPageIsAsWideAsTheEnvironmentSaysIfThatCanBe) {
  EXPECT_EQ(page_style(pipe_.descriptor()).width, 80U);
  for (const auto& [text, width] :
       std::vector<std::pair<std::string, std::size_t>>{{"120", 120},
                                                        {"", 80},
                                                        {"wide", 80},
                                                        {"0", 80},
                                                        {"-5", 80},
                                                        {"3", 80},
                                                        {"99999", 80},
                                                        {"100x", 80},
                                                        {"99999999999999999999999", 80}}) {
    const Variable columns("COLUMNS", text);
    EXPECT_EQ(page_style(pipe_.descriptor()).width, width) << "COLUMNS=" << text;
  }
}

TEST_F(TerminalTest, MessagesAreWrappedOnATerminalOnly) {
  const Variable columns("COLUMNS", "60");
  EXPECT_EQ(message_style(Terminal(132).descriptor()).width, 132U);
  EXPECT_EQ(message_style(pipe_.descriptor()).width, 0U);
}

TEST_F(TerminalTest, ColoursAreForTerminalsWhereNobodySaysNo) {
  const Terminal terminal(80);
  EXPECT_TRUE(page_style(terminal.descriptor()).colour);
  EXPECT_TRUE(message_style(terminal.descriptor()).colour);
  EXPECT_FALSE(page_style(pipe_.descriptor()).colour);
  EXPECT_FALSE(message_style(pipe_.descriptor()).colour);
  {
    const Variable no_color("NO_COLOR", "1");
    EXPECT_FALSE(page_style(terminal.descriptor()).colour);
    EXPECT_FALSE(message_style(terminal.descriptor()).colour);
  }
  {
    const Variable no_color("NO_COLOR", "");
    EXPECT_TRUE(page_style(terminal.descriptor()).colour) << "empty counts as unset";
  }
  const Variable term("TERM", "dumb");
  EXPECT_FALSE(page_style(terminal.descriptor()).colour);
}

TEST(Messages, AreLabelledWrappedAndEndedOnce) {
  EXPECT_EQ(error_message("no data", {}), "error: no data\n");
  EXPECT_EQ(error_message("no data\n", {}), "error: no data\n");
  EXPECT_EQ(warning_message("no data", {}), "warning: no data\n");
  EXPECT_EQ(error_message("there is no data here", {.width = 20}),
            "error: there is no\n    data here\n");
}

TEST(Messages, OnlyTheirLabelIsColoured) {
  const std::string message = error_message("there is no data here", {.width = 20, .colour = true});
  EXPECT_EQ(message, "\x1b[1m\x1b[31merror: \x1b[0mthere is no\n    data here\n");
  EXPECT_EQ(warning_message("x", {.colour = true}), "\x1b[1m\x1b[33mwarning: \x1b[0mx\n");
  EXPECT_EQ(TextStyle{.colour = true}.heading("flags:"), "\x1b[1mflags:\x1b[0m");
  EXPECT_EQ(TextStyle{}.heading("flags:"), "flags:");
}

const std::vector<Row> kRows{
    {"--json", "one line"}, {"--minimal", "what differs from the rest"}, {"-x", ""}};

TEST(Columns, StandBelowEachOtherForWideCharactersToo) {
  const std::vector<std::vector<std::string>> rows{{"\u540d", "x"}, {"abc", "y"}};
  EXPECT_EQ(table(rows), "  \u540d   x\n  abc  y\n");
}

TEST(Columns, TheRightOneIsWrapped) {
  EXPECT_EQ(two_columns(kRows, {.width = 40}),
            "  --json     one line\n"
            "  --minimal  what differs from the rest\n"
            "  -x\n");
  EXPECT_EQ(two_columns(kRows, {.width = 38}),
            "  --json     one line\n"
            "  --minimal  what differs from the\n"
            "             rest\n"
            "  -x\n");
  EXPECT_EQ(two_columns(kRows, {}), two_columns(kRows, {.width = 40}));
}

TEST(Columns, StandBelowEachOtherWhereThereIsNoRoom) {
  EXPECT_EQ(two_columns(kRows, {.width = 30}),
            "  --json\n"
            "      one line\n"
            "  --minimal\n"
            "      what differs from the\n"
            "      rest\n"
            "  -x\n");
}

}  // namespace
}  // namespace phalanx
