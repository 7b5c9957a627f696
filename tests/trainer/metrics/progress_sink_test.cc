// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/sinks/progress_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "tests/trainer/metrics/screen.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Progress : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm", 1);
    ::setenv("NO_COLOR", "1", 1);
    run_.max_steps = 2000;
  }

  static Record record_at(int64_t step, double loss, Phase phase = Phase::train) {
    Record record;
    record.phase = phase;
    record.state.step = step;
    record.state.elapsed = static_cast<double>(step) / 10;
    record.fields = {{"loss", loss}, {"lr", 6e-4}, {"tokens_per_second", 12345.6}};
    return record;
  }

  RunDescription run_;
};

TEST_F(Progress, IsPlainLinesWithoutATerminal) {
  const Screen screen(0);
  Console console(screen.descriptor());
  ProgressSink sink(console);
  sink.open(run_, {});
  sink.write(record_at(200, 2.5));
  sink.write(record_at(200, 2.25, Phase::validate));
  sink.close();
  EXPECT_EQ(screen.take(),
            "train     step 200/2000  loss 2.500  lr 0.0006  12.35k tokens/s  20s elapsed  "
            "3m00s left\n"
            "validate  step 200/2000  loss 2.250  lr 0.0006  12.35k tokens/s  20s elapsed\n");
}

TEST_F(Progress, AValidationBeforeTheFirstStepIsNoPartOfThePace) {
  const Screen screen(0);
  Console console(screen.descriptor());
  ProgressSink sink(console);
  sink.open(run_, {});
  Record before = record_at(0, 2.5, Phase::validate);
  before.state.elapsed = 60;
  sink.write(before);
  EXPECT_THAT(screen.take(), HasSubstr("  1m00s elapsed\n"));
  Record first = record_at(200, 2.5);
  first.state.elapsed = 80;
  sink.write(first);
  EXPECT_THAT(screen.take(), EndsWith("  1m20s elapsed  3m00s left\n"));
}

TEST_F(Progress, IsOneLiveLineOnATerminal) {
  const Screen screen(120);
  Console console(screen.descriptor());
  ProgressSink sink(console);
  sink.open(run_, {});
  sink.write(record_at(200, 2.5));
  EXPECT_EQ(screen.take(),
            "\rstep 200/2000  loss 2.500  lr 0.0006  12.35k tokens/s  20s elapsed  3m00s left"
            "\x1b[K");
  sink.write(record_at(200, 2.25, Phase::validate));
  EXPECT_THAT(screen.take(), HasSubstr("loss 2.500  validation loss 2.250  lr"));
  sink.write(record_at(201, 2.4));
  EXPECT_THAT(screen.take(), StartsWith("\rstep 201/2000  loss 2.400  validation loss 2.250  lr"));
  sink.close();
  EXPECT_EQ(screen.take(), "\n");
}

TEST_F(Progress, FitsTheTerminal) {
  for (const unsigned short columns : {1, 5, 20, 40, 60, 80}) {
    const Screen screen(columns);
    Console console(screen.descriptor());
    ProgressSink sink(console);
    sink.open({}, {});
    sink.write(record_at(200, 2.5));
    sink.write(record_at(200, 2.25, Phase::validate));
    std::string text = screen.take();
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    text = text.substr(text.rfind('\r') + 1);
    EXPECT_LE(text.size() - std::string("\x1b[K").size(), std::max(1, columns - 1));
  }
}

TEST_F(Progress, LinesOfOthersComeAboveTheLiveLine) {
  const Screen screen(40);
  Console console(screen.descriptor());
  ProgressSink sink(console);
  sink.open({}, {});
  sink.write(record_at(7, 2.5));
  screen.take();
  console.line("saved step 7");
  EXPECT_THAT(screen.take(), testing::MatchesRegex("\r\x1b.Ksaved step 7\nstep 7  loss 2.500.*"));
}

TEST_F(Progress, ColoursOnlyWhereTheyAreWanted) {
  ::unsetenv("NO_COLOR");
  const Screen terminal(80);
  const Screen pipe(0);
  for (const Screen* screen : {&terminal, &pipe}) {
    Console console(screen->descriptor());
    ProgressSink sink(console);
    sink.open({}, {});
    sink.write(record_at(7, 2.5));
  }
  EXPECT_THAT(terminal.take(), StartsWith("\r\x1b[1mstep 7\x1b[0m  loss"));
  EXPECT_THAT(pipe.take(), Not(HasSubstr("\x1b")));
}

TEST_F(Progress, ADumbTerminalGetsPlainLines) {
  ::setenv("TERM", "dumb", 1);
  const Screen screen(80);
  Console console(screen.descriptor());
  ProgressSink sink(console);
  sink.open({}, {});
  sink.write(record_at(7, 2.5));
  EXPECT_THAT(screen.take(), StartsWith("train     step 7"));
}

TEST_F(Progress, AnInterruptedRunLeavesItsLineWhole) {
  const Screen screen(80);
  Console console(screen.descriptor());
  {
    ProgressSink sink(console);
    sink.open({}, {});
    sink.write(record_at(7, 2.5));
  }
  EXPECT_THAT(screen.take(), EndsWith("\x1b[K\n"));
}

}  // namespace
}  // namespace phalanx
