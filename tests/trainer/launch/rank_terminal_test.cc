// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/trainer/launch/subprocess.h"
#include "trainer/launch/rank_processes.h"

namespace phalanx {
namespace {

/// A process whose keyboard and screen are a terminal of its own, which stops background writers.
class OnTerminal {
 public:
  explicit OnTerminal(const std::function<int()>& body)
      : terminal_(take_descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "open")) {
    if (::grantpt(terminal_.number()) != 0 || ::unlockpt(terminal_.number()) != 0) {
      throw_system_error("make a terminal");
    }
    const std::string name = ::ptsname(terminal_.number());
    pid_ = ::fork();
    if (pid_ == 0) run(name, body);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() { wait(); }

  void type(std::string_view keys) const {
    ASSERT_EQ(::write(terminal_.number(), keys.data(), keys.size()),
              static_cast<ssize_t>(keys.size()));
  }

  /// Waits until the screen has shown a text; false when the process ends before.
  bool shows(std::string_view text) {
    while (screen_.find(text) == std::string::npos) {
      pollfd event{terminal_.number(), POLLIN, 0};
      if (::poll(&event, 1, kPatienceSeconds * 1000) <= 0) return false;
      if (read_some(terminal_, screen_) != ReadResult::some) return false;
    }
    return true;
  }

  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  [[noreturn]] static void run(const std::string& name, const std::function<int()>& body) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(kPatienceSeconds);
    ::setsid();
    const int terminal = ::open(name.c_str(), O_RDWR);  // the session's from now on
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal, number);
    termios settings{};
    ::tcgetattr(terminal, &settings);
    settings.c_lflag |= TOSTOP;
    ::tcsetattr(terminal, TCSANOW, &settings);
    ::_exit(body());
  }

  Descriptor terminal_;
  pid_t pid_ = -1;
  std::string screen_;
};

TEST(Terminal, ShowsRankZeroAndStopsAllRanksOnce) {
  OnTerminal launcher([] {
    const auto rank_main = [](const Environment& environment) -> RankOutcome {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGINT);
      sigprocmask(SIG_BLOCK, &set, nullptr);
      const auto rank = static_cast<int>(environment.rank);
      std::printf("ready %d\n", rank);
      int signal = 0;
      sigwait(&set, &signal);
      std::printf("stopped %d\n", rank);
      const timespec none{};
      return {sigtimedwait(&set, nullptr, &none) < 0 ? 128 + signal : 1, ""};
    };
    return RankProcesses(2).run(rank_main).exit_code;
  });
  EXPECT_TRUE(launcher.shows("ready 0"));
  EXPECT_TRUE(launcher.shows("[rank 1] ready 1"));
  launcher.type("\x03");
  EXPECT_TRUE(launcher.shows("stopped 0"));
  EXPECT_TRUE(launcher.shows("[rank 1] stopped 1"));
  EXPECT_EQ(launcher.wait(), 128 + SIGINT);
}

}  // namespace
}  // namespace phalanx
