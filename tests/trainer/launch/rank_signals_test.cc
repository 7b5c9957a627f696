// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/trainer/launch/peers.h"
#include "tests/trainer/launch/subprocess.h"
#include "trainer/launch/rank_processes.h"

namespace phalanx {
namespace {

sigset_t blocked(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return set;
}

int wait_for_one_of(const sigset_t& set) {
  int signal = 0;
  sigwait(&set, &signal);
  return signal;
}

int exit_code_with_words(const RankOutcome& outcome) {
  std::fputs(outcome.message.c_str(), stderr);
  return outcome.exit_code;
}

class RelayedSignal : public testing::TestWithParam<int> {};

TEST_P(RelayedSignal, StopsAllRanks) {
  Channel ready;
  Subprocess launcher([&] {
    return exit_code_with_words(RankProcesses(3).run([&](const Environment&) -> RankOutcome {
      const sigset_t set = blocked({GetParam()});
      ready.tell(1);
      return {128 + wait_for_one_of(set), ""};
    }));
  });
  for (int rank = 0; rank < 3; ++rank) ready.hear();
  launcher.send(GetParam());
  const auto end = launcher.wait();
  EXPECT_EQ(end.exit_code, 128 + GetParam());
  EXPECT_EQ(end.err, "");
}

TEST_P(RelayedSignal, MayKillRanksThatDoNotExpectIt) {
  Channel ready;
  Subprocess launcher([&] {
    return exit_code_with_words(RankProcesses(2).run([&](const Environment& environment) {
      const Peers peers(environment);
      ready.tell(1);
      if (environment.rank == 0) return peers.meet_end();
      for (;;) ::pause();
    }));
  });
  for (int rank = 0; rank < 2; ++rank) ready.hear();
  launcher.send(GetParam());
  const auto end = launcher.wait();
  EXPECT_EQ(end.exit_code, 128 + GetParam());
  EXPECT_EQ(end.err, "");
}

INSTANTIATE_TEST_SUITE_P(Signals, RelayedSignal,
                         testing::Values(SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2));

TEST(Signals, AreRelayedEachTime) {
  Channel ready;
  Subprocess launcher([&] {
    return exit_code_with_words(RankProcesses(2).run([&](const Environment&) -> RankOutcome {
      const sigset_t set = blocked({SIGINT});
      ready.tell(1);
      wait_for_one_of(set);
      ready.tell(2);
      return {128 + wait_for_one_of(set), ""};
    }));
  });
  for (int rank = 0; rank < 2; ++rank) ready.hear();
  launcher.send(SIGINT);
  for (int rank = 0; rank < 2; ++rank) ready.hear();
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait().exit_code, 128 + SIGINT);
}

TEST(Signals, LetRanksTakeTheirTimeToStop) {
  Channel ready;
  Subprocess launcher([&] {
    const RankProcesses ranks(2, std::chrono::milliseconds(1));
    return exit_code_with_words(ranks.run([&](const Environment& environment) -> RankOutcome {
      const sigset_t set = blocked({SIGTERM});
      const Peers peers(environment);
      ready.tell(1);
      const int signal = wait_for_one_of(set);
      if (environment.rank == 1) {
        peers.wait_for_end();
        ::usleep(20000);  // much longer than the grace, as if it wrote a checkpoint
      }
      return {128 + signal, ""};
    }));
  });
  for (int rank = 0; rank < 2; ++rank) ready.hear();
  launcher.send(SIGTERM);
  const auto end = launcher.wait();
  EXPECT_EQ(end.exit_code, 128 + SIGTERM);
  EXPECT_EQ(end.err, "");
}

TEST(Signals, StopAndContinueRanksWithTheLauncher) {
  Channel ranks;
  Subprocess launcher([&] {
    return RankProcesses(2)
        .run([&](const Environment&) -> RankOutcome {
          const sigset_t set = blocked({SIGTERM});
          ranks.tell(::getpid());
          return {128 + wait_for_one_of(set), ""};
        })
        .exit_code;
  });
  const std::vector<int64_t> pids = {ranks.hear(), ranks.hear()};
  launcher.send(SIGTSTP);
  launcher.wait_until_stopped();
  for (const int64_t pid : pids) wait_for_state(static_cast<pid_t>(pid), 'T');
  launcher.send(SIGCONT);
  for (const int64_t pid : pids) wait_for_state(static_cast<pid_t>(pid), 'S');
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait().exit_code, 128 + SIGTERM);
}

TEST(Signals, ReachTheLauncherAloneFromATerminal) {
  const pid_t launchers_group = ::getpgrp();
  EXPECT_EQ(RankProcesses(2).run([&](const Environment&) -> RankOutcome {
    if (::getpgrp() == ::getpid() && ::getpgrp() != launchers_group) return {};
    return {1, "not in a process group of its own"};
  }),
            RankOutcome{});
}

std::string signal_setup() {
  std::string text;
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (signal == SIGTTOU) continue;  // a rank ignores it, to be able to write in the background
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    text += sigismember(&mask, signal) == 1 ? 'b' : '-';
    text += action.sa_handler == SIG_DFL ? 'd' : action.sa_handler == SIG_IGN ? 'i' : 'h';
  }
  return text;
}

TEST(Signals, ActInRanksAndLaterAsTheyDidBefore) {
  Subprocess launcher([] {
    std::signal(SIGCHLD, SIG_IGN);
    std::signal(SIGUSR1, [](int) {});
    blocked({SIGHUP});
    const std::string before = signal_setup();
    const RankOutcome outcome = RankProcesses(2).run([&](const Environment&) -> RankOutcome {
      const std::string now = signal_setup();
      if (now != before) return {1, before + "\n" + now};
      return {};
    });
    if (signal_setup() != before) return 9;
    return exit_code_with_words(outcome);
  });
  const auto end = launcher.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST(KilledLauncher, LeavesNoOrphans) {
  Channel ranks;
  Subprocess launcher([&] {
    RankProcesses(3).run([&](const Environment& environment) -> RankOutcome {
      blocked({SIGTERM, SIGINT, SIGHUP});
      ranks.tell(::getpid());
      if (environment.rank == 2) std::raise(SIGSTOP);
      for (;;) ::pause();
    });
    return 0;
  });
  std::vector<ProcessWatch> watches;
  for (int rank = 0; rank < 3; ++rank) watches.emplace_back(static_cast<pid_t>(ranks.hear()));
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait().exit_code, 128 + SIGKILL);
  for (const ProcessWatch& rank : watches) EXPECT_TRUE(rank.ends());
}

}  // namespace
}  // namespace phalanx
