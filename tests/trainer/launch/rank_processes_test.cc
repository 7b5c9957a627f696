// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/rank_processes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <system_error>
#include <thread>

#include "tests/trainer/launch/peers.h"
#include "tests/trainer/launch/subprocess.h"
#include "trainer/base/user_error.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

// So long that a test which needs it to pass by never ends in time, and one that needs it to pass
// quickly does.
constexpr std::chrono::milliseconds kEndless{std::chrono::hours(1)};
constexpr std::chrono::milliseconds kShort{50};

RankOutcome expect(bool condition, const std::string& what) {
  return condition ? RankOutcome{} : RankOutcome{1, "not as expected: " + what};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(unset)" : value;
}

[[noreturn]] void wait_for_ever() {
  for (;;) ::pause();
}

void block(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

TEST(RankProcesses, SucceedTogether) {
  EXPECT_EQ(RankProcesses(4, kEndless).run([](const Environment& environment) {
    Peers peers(environment);
    return RankOutcome{};
  }),
            RankOutcome{});
}

TEST(RankProcesses, MayEndLongBeforeOthers) {
  EXPECT_EQ(RankProcesses(2, std::chrono::milliseconds(1)).run([](const Environment& environment) {
    const Peers peers(environment);
    if (environment.rank == 1) peers.wait_for_end();
    return RankOutcome{};
  }),
            RankOutcome{});
}

TEST(RankProcesses, HaveTheirPlaceInTheEnvironment) {
  const RankOutcome outcome = RankProcesses(3, kEndless).run([](const Environment& environment) {
    Environment exported = environment;
    exported.listen_fd.reset();
    exported.launcher = "torch";  // Whose variables it sets.
    if (read_environment() != exported) return expect(false, "the variables");
    const bool right = environment.world_size == 3 && environment.local_world_size == 3 &&
                       environment.local_rank == environment.rank &&
                       environment.master_addr == "127.0.0.1" && environment.master_port != 0 &&
                       environment.listen_fd.has_value() == (environment.rank == 0);
    return expect(right, "the place of rank " + std::to_string(environment.rank));
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(RankProcesses, ShareTheCoresAndMeetOnTheLoopbackDevice) {
  const auto values = [](const Environment&) {
    return RankOutcome{1, variable("OMP_NUM_THREADS") + " " + variable("GLOO_SOCKET_IFNAME")};
  };
  ::unsetenv("OMP_NUM_THREADS");
  ::unsetenv("GLOO_SOCKET_IFNAME");
  const int64_t share = std::max(int64_t{1}, usable_cores() / 2);
  EXPECT_EQ(RankProcesses(2, kEndless).run(values).message, std::to_string(share) + " lo");
  EXPECT_EQ(RankProcesses(usable_cores() + 1, kEndless).run(values).message, "1 lo");
  ::setenv("OMP_NUM_THREADS", "7", 1);
  ::setenv("GLOO_SOCKET_IFNAME", "eth7", 1);
  EXPECT_EQ(RankProcesses(2, kEndless).run(values).message, "7 eth7");
  ::unsetenv("OMP_NUM_THREADS");
  ::unsetenv("GLOO_SOCKET_IFNAME");
}

TEST(RankProcesses, ListenOnTheLoopbackAddressOnly) {
  const RankOutcome outcome = RankProcesses(2, kEndless).run([](const Environment& environment) {
    if (environment.rank != 0) return RankOutcome{};  // the socket is rank 0's, which may end first
    std::ifstream sockets("/proc/net/tcp");
    std::ifstream sockets6("/proc/net/tcp6");
    char port[8];
    std::snprintf(port, sizeof(port), ":%04X", environment.master_port);
    int found = 0;
    for (std::string line; std::getline(sockets, line);) {
      const bool listens = line.find(std::string(port) + " 00000000:0000 0A") != std::string::npos;
      if (!listens) continue;
      ++found;
      if (line.find(" 0100007F:") == std::string::npos) return expect(false, line);
    }
    for (std::string line; std::getline(sockets6, line);) {
      if (line.find(std::string(port) + " 0000000000") != std::string::npos) ++found;
    }
    return expect(found == 1, std::to_string(found) + " listening sockets");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(RankProcesses, HoldNoDescriptorOfOthers) {
  const int64_t before = count_descriptors();
  const RankOutcome outcome = RankProcesses(4, kEndless).run([&](const Environment& environment) {
    // Its report pipe, and rank 0 the listening socket.
    const int64_t expected = before + 1 + (environment.rank == 0 ? 1 : 0);
    const int64_t count = count_descriptors();
    return expect(count == expected,
                  std::to_string(count) + " descriptors, not " + std::to_string(expected));
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(RankProcesses, LeaveNoDescriptorsBehind) {
  const int64_t before = count_descriptors();
  for (int i = 0; i < 20; ++i) {
    RankProcesses(3, kEndless).run([](const Environment& environment) {
      return RankOutcome{environment.rank == 1 ? 1 : 0, "x"};
    });
  }
  EXPECT_EQ(count_descriptors(), before);
}

TEST(RankProcesses, ReadNothingFromTheKeyboard) {
  const RankOutcome outcome = RankProcesses(2, kEndless).run([](const Environment&) {
    char byte = 0;
    return expect(::read(STDIN_FILENO, &byte, 1) == 0, "an empty stdin");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(RankProcesses, AreForkedFromASingleThreadOnly) {
  std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  ::pthread_setname_np(other.native_handle(), "a) Z 0 0 0 0 4");  // as the kernel says of its end
  EXPECT_THROW(RankProcesses(2).run([](const Environment&) { return RankOutcome{}; }),
               std::logic_error);
}

/// A process that traces a thread of this one and never asks for its end: until then the kernel
/// lists a thread that has ended.
class Tracer {
 public:
  Tracer() { ::prctl(PR_SET_PTRACER, process_.pid()); }  // fails where everybody may

  /// 0, or the error of what refuses it.
  int64_t trace(int64_t thread) {
    thread_.tell(thread);
    return error_.hear();
  }

 private:
  Channel thread_, error_;
  Subprocess process_{[this] {
    const auto thread = static_cast<pid_t>(thread_.hear());
    error_.tell(::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 ? 0 : errno);
    wait_for_ever();
    return 0;
  }};
};

int64_t listed_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(RankProcesses, AreForkedAfterAThreadThatHasEnded) {
  Tracer tracer;
  const int64_t before = listed_threads();
  std::promise<int64_t> number;
  std::promise<void> end;
  std::thread ended([&number, told = end.get_future()] {
    number.set_value(::gettid());
    told.wait();
  });
  const int64_t error = tracer.trace(number.get_future().get());
  end.set_value();
  ended.join();
  if (error != 0) {
    GTEST_SKIP() << "this system refuses ptrace, by which an ended thread is kept: "
                 << std::generic_category().message(static_cast<int>(error));
  }
  ASSERT_EQ(listed_threads(), before + 1) << "the thread is kept";
  EXPECT_EQ(RankProcesses(2, kEndless).run([](const Environment&) { return RankOutcome{}; }),
            RankOutcome{});
}

TEST(RankProcesses, SayWhatTheSystemLacks) {
  Subprocess launcher([] {
    const auto few = static_cast<rlim_t>(count_descriptors() + 12);
    const rlimit limit{few, few};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    try {
      RankProcesses(100, kEndless).run([](const Environment&) -> RankOutcome { wait_for_ever(); });
    } catch (const std::system_error& error) {
      return std::string(error.what()).starts_with("cannot ") ? 7 : 8;
    }
    return 9;
  });
  EXPECT_EQ(launcher.wait().exit_code, 7);
}

TEST(FailedRank, ThrowsAnException) {
  EXPECT_EQ(RankProcesses(3, kEndless).run([](const Environment& environment) {
    const Peers peers(environment);
    if (environment.rank == 2) throw std::runtime_error("lost");
    return peers.meet_end();
  }),
            (RankOutcome{1, "rank 2: lost", false, 2}));
}

TEST(FailedRank, ThrowsSomethingElse) {
  EXPECT_EQ(RankProcesses(1).run([](const Environment&) -> RankOutcome { throw 3; }),
            (RankOutcome{1, "rank 0: an exception that is no std::exception", false, 0}));
}

TEST(FailedRank, ThrowsAnExceptionWithoutAMessage) {
  EXPECT_EQ(
      RankProcesses(1).run([](const Environment&) -> RankOutcome { throw std::runtime_error(""); }),
      (RankOutcome{1, "rank 0: an exception without a message", false, 0}));
}

// Its own lines say why.
TEST(FailedRank, ReturnsAnExitCode) {
  EXPECT_EQ(RankProcesses(2).run([](const Environment&) { return RankOutcome{.exit_code = 2}; }),
            (RankOutcome{.exit_code = 2}));
}

TEST(FailedRank, FindsAMistakeOfTheUser) {
  EXPECT_EQ(RankProcesses(2).run([](const Environment& environment) -> RankOutcome {
    if (environment.rank == 1) throw UserError("no such task");
    return {};
  }),
            (RankOutcome{2, "rank 1: no such task", false, 1}));
}

TEST(FailedRank, SaysWhatAllTheOthersSay) {
  EXPECT_EQ(RankProcesses(4).run(
                [](const Environment&) -> RankOutcome { throw UserError("there is no file 'x'"); }),
            (RankOutcome{2, "there is no file 'x'"}));
}

TEST(FailedRank, LeavesWithoutAWord) {
  EXPECT_EQ(RankProcesses(2, kEndless).run([](const Environment& environment) {
    const Peers peers(environment);
    if (environment.rank == 1) ::_exit(3);
    return peers.meet_end();
  }),
            (RankOutcome{3, "rank 1 left with exit code 3 without saying why", false, 1}));
}

TEST(FailedRank, LeavesEarlyWithExitCodeZero) {
  EXPECT_EQ(RankProcesses(2, kEndless).run([](const Environment& environment) {
    const Peers peers(environment);
    if (environment.rank == 0) ::_exit(0);
    return peers.meet_end();
  }),
            (RankOutcome{1, "rank 0 left with exit code 0 without saying why", false, 0}));
}

class KilledRank : public testing::TestWithParam<int> {};

TEST_P(KilledRank, IsTheCause) {
  const RankOutcome outcome = RankProcesses(3, kEndless).run([](const Environment& environment) {
    const Peers peers(environment);
    if (environment.rank == 1) {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      std::signal(GetParam(), SIG_DFL);  // sanitizers have handlers
      std::raise(GetParam());
    }
    return peers.meet_end();
  });
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_FALSE(outcome.caused_by_peer);
  const std::string expected = "rank 1 was killed by signal " + std::to_string(GetParam()) + " (";
  EXPECT_TRUE(outcome.message.starts_with(expected)) << outcome.message;
}

INSTANTIATE_TEST_SUITE_P(Signals, KilledRank, testing::Values(SIGKILL, SIGSEGV, SIGABRT, SIGTERM));

TEST(StuckRank, IsKilledAfterTheGrace) {
  EXPECT_EQ(RankProcesses(3, kShort).run([](const Environment& environment) -> RankOutcome {
    if (environment.rank == 1) block(SIGTERM);
    const Peers peers(environment);
    if (environment.rank == 0) return {1, "no space"};
    wait_for_ever();
  }),
            (RankOutcome{1, "rank 0: no space", false, 0}));
}

// It has closed all that it had open long before, and is silent since.
TEST(StuckRank, IsNotTheCauseWhereTheLauncherKilledIt) {
  const auto is_closed = static_cast<std::atomic<bool>*>(::mmap(nullptr, sizeof(std::atomic<bool>),
                                                                PROT_READ | PROT_WRITE,
                                                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(is_closed, MAP_FAILED);
  EXPECT_EQ(RankProcesses(2, kShort).run([&](const Environment& environment) -> RankOutcome {
    if (environment.rank == 1) {
      block(SIGTERM);
      ::close_range(STDERR_FILENO + 1, ~0U, 0);
      *is_closed = true;
      wait_for_ever();
    }
    while (!*is_closed) std::this_thread::yield();
    // The launcher learns of it first.
    std::this_thread::sleep_for(kShort);
    return {1, "no space"};
  }),
            (RankOutcome{1, "rank 0: no space", false, 0}));
  ::munmap(is_closed, sizeof(std::atomic<bool>));
}

class EndlessFlush : public std::streambuf {
  int sync() override { wait_for_ever(); }
};

// It hangs on its way out, after it has reported.
TEST(StuckRank, IsTheCauseWhereItHadToldItsOwnFailure) {
  Channel channel;
  const RankProcesses ranks(2, std::chrono::seconds(1));
  EXPECT_EQ(ranks.run([&](const Environment& environment) -> RankOutcome {
    static EndlessFlush endless;
    block(SIGTERM);
    if (environment.rank == 0) {
      channel.hear();
      return {1, "a closed connection", true};
    }
    std::cout.rdbuf(&endless);
    channel.tell(1);
    return {2, "no such task"};
  }),
            (RankOutcome{2, "rank 1: no such task", false, 1}));
}

TEST(StuckRank, MayEndByItselfWhenItIsTold) {
  EXPECT_EQ(RankProcesses(2, kShort).run([](const Environment& environment) -> RankOutcome {
    block(SIGTERM);
    const Peers peers(environment);
    if (environment.rank == 0) return {1, "a closed connection", true};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    int signal = 0;
    sigwait(&set, &signal);
    return {128 + signal, ""};
  }),
            (RankOutcome{1, "rank 0: a closed connection", true, 0}));
}

TEST(StuckRank, IsContinuedWhenItIsToldToEnd) {
  Channel channel;
  const RankProcesses ranks(2, std::chrono::seconds(3));
  const RankOutcome outcome = ranks.run([&](const Environment& environment) -> RankOutcome {
    block(SIGTERM);
    const Peers peers(environment);
    if (environment.rank == 0) {
      wait_for_state(static_cast<pid_t>(channel.hear()), 'T');
      return {1, "broke"};
    }
    channel.tell(::getpid());
    std::raise(SIGSTOP);
    channel.tell(-1);
    return {};
  });
  EXPECT_EQ(outcome, (RankOutcome{1, "rank 0: broke", false, 0}));
  EXPECT_EQ(channel.hear(), -1);
}

}  // namespace
}  // namespace phalanx
