// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/launch/subprocess.h"
#include "trainer/launch/rank_processes.h"

namespace phalanx {
namespace {

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// What `rank_main` in this many ranks leaves behind.
Subprocess::End launch(int64_t count, const RankMain& rank_main) {
  return Subprocess([&] { return RankProcesses(count).run(rank_main).exit_code; }).wait();
}

TEST(RankOutput, HasAPrefixExceptForRankZero) {
  const auto end = launch(3, [](const Environment& environment) {
    std::printf("one %d\n", static_cast<int>(environment.rank));
    std::cout << "two\n";
    std::cerr << "warning\n";
    return RankOutcome{};
  });
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(sorted_lines(end.out),
            (std::vector<std::string>{"[rank 1] one 1", "[rank 1] two", "[rank 2] one 2",
                                      "[rank 2] two", "one 0", "two"}));
  EXPECT_EQ(sorted_lines(end.err),
            (std::vector<std::string>{"[rank 1] warning", "[rank 2] warning", "warning"}));
}

TEST(RankOutput, EndsAnUnfinishedLine) {
  const auto end = launch(2, [](const Environment& environment) {
    if (environment.rank == 1) std::printf("whole\nhalf");
    if (environment.rank == 1) std::fprintf(stderr, "words before a crash");
    if (environment.rank == 1) std::raise(SIGKILL);
    return RankOutcome{};
  });
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.out, "[rank 1] whole\n");  // the rest was in a buffer of the killed process
  EXPECT_EQ(end.err, "[rank 1] words before a crash\n");
}

TEST(RankOutput, IsCompleteHoweverMuchThereIs) {
  constexpr int kLines = 20000;
  const auto end = launch(3, [](const Environment&) {
    for (int i = 0; i < kLines; ++i) std::printf("line %d of many\n", i);
    return RankOutcome{};
  });
  const auto lines = sorted_lines(end.out);
  EXPECT_EQ(lines.size(), 3u * kLines);
  EXPECT_TRUE(std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
    if (line.starts_with("[rank ")) line.remove_prefix(std::string_view("[rank 1] ").size());
    return line.starts_with("line ") && line.ends_with(" of many");
  }));
}

TEST(RankOutput, ThatTheLauncherHadBufferedComesOnce) {
  const auto end = Subprocess([] {
                     std::printf("before");
                     std::cout << " launch\n";
                     RankProcesses(4).run([](const Environment&) { return RankOutcome{}; });
                     return 0;
                   }).wait();
  EXPECT_EQ(end.out, "before launch\n");
}

TEST(RankOutput, MayLoseItsReader) {
  const auto end = Subprocess([] {
                     Pipe nobody = make_pipe();
                     ::dup2(nobody.write_end.number(), STDOUT_FILENO);
                     nobody = Pipe();
                     const auto outcome = RankProcesses(2).run([](const Environment& environment) {
                       for (int i = 0; environment.rank == 1 && i < 20000; ++i) std::puts("line");
                       return RankOutcome{};
                     });
                     return outcome.exit_code;
                   }).wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST(RankOutput, ThatADiskHasNoRoomForIsCountedOnTheOtherStream) {
  const auto end = Subprocess([] {
                     const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
                     ::dup2(full.number(), STDOUT_FILENO);
                     return RankProcesses(2)
                         .run([](const Environment& environment) {
                           for (int i = 0; environment.rank == 1 && i < 30; ++i) std::puts("line");
                           return RankOutcome{};
                         })
                         .exit_code;
                   }).wait();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_NE(end.err.find("warning: standard output lacks 30 records: No space left on device\n"),
            std::string::npos)
      << end.err;
}

TEST(RankOutput, MayHaveNowhereToGo) {
  const auto end = Subprocess([] {
                     ::close(STDIN_FILENO);
                     ::close(STDOUT_FILENO);
                     ::close(STDERR_FILENO);
                     const auto outcome = RankProcesses(3).run([](const Environment& environment) {
                       if (environment.rank > 0) std::puts("line");
                       return environment.rank == 2 ? RankOutcome{9, "words"} : RankOutcome{};
                     });
                     return outcome == RankOutcome{9, "rank 2: words", false, 2} ? 0 : 1;
                   }).wait();
  EXPECT_EQ(end.exit_code, 0);
}

// The reader has stopped reading: a pager, a terminal after Ctrl-S.
TEST(RankOutput, DoesNotKeepSignalsWaitingForASlowReader) {
  const Pipe screen = make_pipe();
  Channel ranks;
  Subprocess launcher([&] {
    ::dup2(screen.write_end.number(), STDOUT_FILENO);
    const auto outcome = RankProcesses(2).run([&](const Environment& environment) {
      ranks.tell(::getpid());
      while (environment.rank == 1) std::puts("line");
      for (;;) ::pause();
      return RankOutcome{};
    });
    return outcome.exit_code;
  });
  const int64_t pids[] = {ranks.hear(), ranks.hear()};
  launcher.send(SIGTERM);
  for (const int64_t pid : pids) wait_for_state(static_cast<pid_t>(pid), kGone);
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait().exit_code, 128 + SIGTERM);
}

}  // namespace
}  // namespace phalanx
