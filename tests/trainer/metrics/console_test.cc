// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/trainer/io/file_size_limit.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/metrics/screen.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

TEST(Console, ALineOfTheCopyIsNotOnTheScreen) {
  const TemporaryFolder folder;
  const Screen screen(0);
  Console console(screen.descriptor());
  console.line_of_copy("nowhere yet");
  console.copy_to(folder / "rank_0.log");
  console.line_of_copy("error: lost");
  EXPECT_EQ(slurp(folder / "rank_0.log"), "error: lost\n");
  EXPECT_EQ(screen.take(), "");
}

TEST(Console, ACopyThatCannotBeWrittenLacksLinesAndTheScreenNone) {
  const TemporaryFolder folder;
  const Screen screen(0);
  Console console(screen.descriptor());
  console.copy_to(folder / "rank_0.log");
  console.line("first");
  {
    const FileSizeLimit limit(10);
    console.line("second");
    console.line("third");
  }
  console.line("fourth");
  EXPECT_EQ(slurp(folder / "rank_0.log"), "first\nfourth\n");
  EXPECT_EQ(screen.take(), "first\nsecond\nthird\nfourth\n");
  const Missing lost = console.take_lost_of_copy();
  EXPECT_EQ(lost.records, 2);
  EXPECT_THAT(lost.why, HasSubstr("rank_0.log': File too large"));
  EXPECT_EQ(console.take_lost_of_copy().records, 0);
  EXPECT_EQ(console.take_lost().records, 0);
}

TEST(Console, EndsTheHalfOfALineThatAFullDiskHasTaken) {
  const TemporaryFolder folder;
  const int file = ::open((folder / "screen").c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  {
    Console console(file);
    console.line("first");
    {
      const FileSizeLimit limit(10);
      console.line("second");
      console.line("third");
    }
    console.line("fourth");
    EXPECT_EQ(console.take_lost().records, 2);
  }
  ::close(file);
  EXPECT_EQ(slurp(folder / "screen"), "first\nseco\nfourth\n");
}

TEST(Console, AReaderThatIsGoneLacksNothing) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  {
    Console console(ends[1]);
    console.line("first");
    EXPECT_EQ(console.take_lost().records, 0);
  }
  ::close(ends[1]);
}

TEST(Console, AnnouncesWhereItIsSilent) {
  const TemporaryFolder folder;
  const Screen screen(0);
  Console console(screen.descriptor());
  console.copy_to(folder / "rank_1.log");
  console.silence();
  console.line("kept in the copy");
  console.announce("on the screen");
  console.line("kept too");
  EXPECT_EQ(screen.take(), "on the screen\n");
  EXPECT_EQ(slurp(folder / "rank_1.log"), "kept in the copy\nkept too\n");
}

TEST(Console, AnnouncesOnStandardErrorWhereTheScreenIsFull) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  {
    Console console(full);
    testing::internal::CaptureStderr();
    console.announce("in need");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "in need\n");
    EXPECT_EQ(console.take_lost().records, 0);
    console.line("lost");
    EXPECT_THAT(console.take_lost().why, HasSubstr("No space left on device"));
  }
  ::close(full);
}

}  // namespace
}  // namespace phalanx
