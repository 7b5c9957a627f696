// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "tests/trainer/metrics/screen.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/count_progress.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(ProgressText, HasShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text("saving", 25'000'000, 100'000'000, 5'000'000),
            "saving  25%  25.0 MB of 100 MB, 5.00 MB/s, 15 s left");
  EXPECT_EQ(progress_text("saving", 0, 100'000'000, 0), "saving  0%  0 B of 100 MB");
}

TEST(ProgressText, NeverTellsOfMoreThanAll) {
  const std::string text = progress_text("loading", 101, 100, 10);
  EXPECT_THAT(text, StartsWith("loading  100%  100 B of 100 B"));
  EXPECT_THAT(text, EndsWith(", 0 s left"));
}

TEST(ProgressText, IsTheNameAloneWhileNothingIsKnown) {
  EXPECT_EQ(progress_text("loading", 0, 0, 0), "loading");
}

TEST(ProgressText, OfPiecesHasTheirNameAndTheTimeLeft) {
  EXPECT_EQ(progress_text("validation", "micro-batches", 120, 480, 2),
            "validation  25%  120 of 480 micro-batches, 3m00s left");
  EXPECT_EQ(progress_text("validation", "micro-batches", 0, 480, 0),
            "validation  0%  0 of 480 micro-batches");
  EXPECT_EQ(progress_text("writing", "texts", 0, 0, 0), "writing");
}

class WithProgress : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TERM", "xterm", 1); }

  ByteProgress progress_;
  std::string seen_;
};

constexpr ProgressPace kAtOnce{
    .live = milliseconds(1), .first_line = milliseconds(1), .line = milliseconds(1)};

TEST_F(WithProgress, HidesTheLiveLineForAWhile) {
  const Screen screen(80);
  Console console(screen.descriptor());
  console.live("step 6");
  screen.take();
  with_progress(
      console, "saving step 7", progress_,
      [&] {
        progress_.begin(200);
        progress_.done = 50;
        seen_ = screen.take_until("50 B of 200 B");
        console.live("step 7");
      },
      kAtOnce);
  EXPECT_THAT(seen_, HasSubstr("\rsaving step 7  25%  50 B of 200 B"));
  EXPECT_THAT(seen_, Not(HasSubstr("\n")));
  EXPECT_THAT(screen.take(), EndsWith("\rstep 7\x1b[K"));
  console.line("next");
  EXPECT_EQ(screen.take(), "\r\x1b[Knext\nstep 7\x1b[K");
}

TEST_F(WithProgress, LeavesTheScreenAloneWhereItIsSoonOver) {
  const Screen screen(80);
  Console console(screen.descriptor());
  console.live("step 6");
  screen.take();
  bool was_done = false;
  with_progress(console, "saving step 7", progress_, [&] { was_done = true; },
                {.live = std::chrono::hours(1)});
  EXPECT_TRUE(was_done);
  EXPECT_THAT(screen.take(), IsEmpty());
}

TEST_F(WithProgress, PassesErrorsOnAndIsGone) {
  const Screen screen(80);
  Console console(screen.descriptor());
  const auto work = [&] {
    screen.take_until("loading");
    throw std::runtime_error("damaged");
  };
  EXPECT_THROW(with_progress(console, "loading", progress_, work, kAtOnce), std::runtime_error);
  EXPECT_THAT(screen.take(), EndsWith("\r\x1b[K"));
  console.line("error");
  EXPECT_EQ(screen.take(), "error\n");
}

TEST_F(WithProgress, FitsTheTerminalAndCutsNoCharacter) {
  const Screen screen(20);
  Console console(screen.descriptor());
  const auto shown = [&](const std::string& name) {
    with_progress(
        console, name, progress_, [&] { seen_ = screen.take_until("\x1b[K"); }, kAtOnce);
    screen.take();
    return seen_.substr(0, seen_.find("\x1b[K"));
  };
  EXPECT_EQ(shown("a name that is much\u00fc longer"), "\ra name that is much");
  EXPECT_EQ(shown("a name that is muc\u00fch longer"), "\ra name that is muc\u00fc");
  EXPECT_EQ(shown("a name that is muc\u65e5 longer"), "\ra name that is muc")
      << "whose last character is two columns wide";
}

TEST_F(WithProgress, WritesALineNowAndThenWhereThereIsNoTerminal) {
  const Screen screen(0);
  Console console(screen.descriptor());
  progress_.begin(200);
  progress_.done = 50;
  with_progress(
      console, "loading", progress_, [&] { seen_ = screen.take_until("left\n"); }, kAtOnce);
  EXPECT_THAT(seen_, StartsWith("loading  25%  50 B of 200 B, "));
}

TEST_F(WithProgress, WritesItsFirstLineSoonerThanTheNext) {
  const Screen screen(0);
  Console console(screen.descriptor());
  progress_.begin(200);
  with_progress(console, "loading", progress_, [&] { seen_ = screen.take_until("\n"); },
                {.first_line = milliseconds(1), .line = std::chrono::hours(1)});
  EXPECT_THAT(seen_, StartsWith("loading  0%  0 B of 200 B"));
  EXPECT_THAT(screen.take(), IsEmpty());
}

TEST_F(WithProgress, CountsPiecesOnATerminal) {
  const Screen screen(80);
  Console console(screen.descriptor());
  CountProgress texts;
  with_progress(
      console, "writing", texts,
      [&] {
        texts.begin_of("texts", 8);
        texts.done = 2;
        seen_ = screen.take_until("left");
      },
      kAtOnce);
  EXPECT_THAT(seen_, HasSubstr("\rwriting  25%  2 of 8 texts, "));
  EXPECT_THAT(screen.take(), EndsWith("\r\x1b[K")) << "and leaves nothing";
}

TEST(CountProgress, LeavesWhatAnEarlierStartHasDoneOutOfItsRate) {
  CountProgress progress;
  progress.begin_of("texts", 1'000'000, 999'999);
  EXPECT_EQ(progress.rate(), 0);
  EXPECT_EQ(progress.done, 999'999U);
  ++progress.done;
  EXPECT_GT(progress.rate(), 0);
}

TEST(ByteProgress, CountsItsRateFromWhereItBegan) {
  ByteProgress progress;
  progress.done = 1'000'000;
  EXPECT_GT(progress.rate(), 0);
  progress.begin(100);
  EXPECT_EQ(progress.rate(), 0);
  EXPECT_EQ(progress.all, 100U);
}

}  // namespace
}  // namespace phalanx
