// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/output_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "tests/trainer/io/file_size_limit.h"

namespace phalanx {
namespace {

/// A pump between two pipes.
class OutputPump : public testing::Test {
 protected:
  void write(std::string_view text) const {
    ASSERT_EQ(::write(rank_.write_end.number(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  std::string pumped(bool rank_has_ended = false) {
    pump_.pump(rank_has_ended);
    outlet_.write();
    std::string text;
    while (read_some(screen_.read_end, text) == ReadResult::some) continue;
    return text;
  }

  Pipe rank_ = make_pipe();
  Pipe screen_ = make_pipe();
  Outlet outlet_{screen_.write_end.number()};
  LinePump pump_{std::move(rank_.read_end), {.prefix = "[rank 1] "}, outlet_};
};

TEST_F(OutputPump, PassesWholeLinesOn) {
  write("one\ntwo\n\nthr");
  EXPECT_EQ(pumped(), "[rank 1] one\n[rank 1] two\n[rank 1] \n");
  EXPECT_EQ(pumped(), "");
  write("ee\n");
  EXPECT_EQ(pumped(), "[rank 1] three\n");
}

TEST_F(OutputPump, EndsAnUnfinishedLineWithTheStream) {
  write("one\ntwo");
  EXPECT_EQ(pumped(), "[rank 1] one\n");
  rank_.write_end.close();
  EXPECT_EQ(pumped(), "[rank 1] two\n");
  EXPECT_FALSE(pump_.is_open());
}

TEST_F(OutputPump, DoesNotWaitForHelpersOfARankThatHasEnded) {
  write("one");
  EXPECT_EQ(pumped(true), "");
  EXPECT_TRUE(pump_.is_open());
  EXPECT_EQ(pumped(true), "[rank 1] one\n");
  EXPECT_FALSE(pump_.is_open());
}

TEST_F(OutputPump, KeepsTheNewestLines) {
  for (int i = 0; i < 25; ++i) write(std::to_string(i) + "\n");
  pumped();
  ASSERT_EQ(pump_.last_lines().size(), LinePump::kKeptLines);
  EXPECT_EQ(pump_.last_lines().front(), "5");
  EXPECT_EQ(pump_.last_lines().back(), "24");
}

TEST_F(OutputPump, BreaksLinesThatAreTooLong) {
  constexpr size_t kBound = 1 << 16;
  std::string text;
  for (int i = 0; i < 3; ++i) {
    write(std::string(kBound / 2, 'x'));
    text += pumped();
  }
  write("\n");
  text += pumped();
  EXPECT_EQ(text, "[rank 1] " + std::string(kBound, 'x') + "\n[rank 1] " +
                      std::string(kBound / 2, 'x') + "\n");
}

TEST_F(OutputPump, DropsWhatNobodyReads) {
  std::signal(SIGPIPE, SIG_IGN);
  screen_.read_end.close();
  write("one\n");
  pump_.pump(false);
  EXPECT_FALSE(outlet_.is_idle());
  outlet_.write();
  EXPECT_TRUE(outlet_.is_idle());
  Outlet none(1 << 20);  // no open descriptor
  none.add("one\n");
  none.write();
  EXPECT_TRUE(none.is_idle());
  EXPECT_EQ(outlet_.take_lost().records + none.take_lost().records, 0);
}

TEST_F(OutputPump, CountsWhatAFullDiskDrops) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Outlet outlet(full.number());
  outlet.add("one\ntwo\n");
  outlet.add("three\n");
  outlet.write();
  EXPECT_TRUE(outlet.is_idle());
  const Missing lost = outlet.take_lost();
  EXPECT_EQ(lost.records, 3);
  EXPECT_EQ(lost.why, "No space left on device");
  EXPECT_EQ(outlet.take_lost().records, 0);
}

TEST_F(OutputPump, EndsTheHalfOfALineThatADiskTookBeforeItWasFull) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Outlet outlet(::fileno(file));
  {
    const FileSizeLimit limit(6);
    for (const char* line : {"one\ntwenty\n", "three\n"}) {
      outlet.add(line);
      outlet.write();
      EXPECT_TRUE(outlet.is_idle());
    }
  }
  outlet.add("four\n");
  outlet.write();
  EXPECT_EQ(outlet.take_lost().records, 2);
  std::string written(64, '\0');
  written.resize(static_cast<size_t>(::pread(::fileno(file), written.data(), written.size(), 0)));
  EXPECT_EQ(written, "one\ntw\nfour\n");
  std::fclose(file);
}

TEST_F(OutputPump, NeverWaitsForASlowReader) {
  ::fcntl(screen_.write_end.number(), F_SETPIPE_SZ, 4096);
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    write(line);
    expected += "[rank 1] " + line;
  }
  pump_.pump(false);
  outlet_.write();
  EXPECT_FALSE(outlet_.is_idle());
  std::string text;
  while (!outlet_.is_idle()) {
    ASSERT_EQ(read_some(screen_.read_end, text), ReadResult::some);
    EXPECT_EQ(text.back(), '\n');
    outlet_.write();
  }
  EXPECT_EQ(text + pumped(), expected);
}

}  // namespace
}  // namespace phalanx
