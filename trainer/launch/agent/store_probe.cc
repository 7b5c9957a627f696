// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/store_probe.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/base/descriptor.h"
#include "trainer/launch/rank_child.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

[[noreturn]] void ask(const StorePlace& place, milliseconds patience) {
  try {
    open_tcp_store(place, {}, patience);
    ::_exit(0);
  } catch (const std::exception&) {
    ::_exit(1);
  }
}

// Whether the process has left with 0 by then; it is gone in any case.
bool leaves_well(pid_t process, Clock::time_point end) {
  constexpr milliseconds kInterval(10);
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return false;
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(kInterval);
  }
  ::kill(process, SIGKILL);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) continue;
  return false;
}

}  // namespace

std::string why_no_store_answers(const StorePlace& place, milliseconds patience) {
  if (std::string why = why_nobody_listens(place); !why.empty()) return why;
  const pid_t parent = ::getpid();
  flush_streams();
  const pid_t child = ::fork();
  if (child == 0) {
    die_with_launcher(parent);
    ask(place, patience);
  }
  if (child < 0) throw_system_error("start the process that looks for the store");
  if (leaves_well(child, Clock::now() + patience)) return {};
  if (std::string why = why_nobody_listens(place); !why.empty()) return why;  // it has just ended
  return "another program listens there, which does not answer as a launch does: choose a port "
         "that is free on the first node";
}

}  // namespace phalanx
