// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/end_with_input.h"

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "trainer/base/descriptor.h"
#include "trainer/launch/rank_child.h"

namespace phalanx {
namespace {

void wait_for_end_of_input() {
  std::array<char, 4096> ignored;
  for (;;) {
    const ssize_t size = ::read(STDIN_FILENO, ignored.data(), ignored.size());
    if (size == 0 || (size < 0 && errno != EINTR)) return;
  }
}

}  // namespace

void end_with_input() {
  const pid_t watched = ::getpid();
  flush_streams();
  const pid_t process = ::fork();
  if (process < 0) throw_system_error("watch standard input");
  if (process > 0) return;
  die_with_launcher(watched);
  // Who waits for the end of this output waits for the watched process alone.
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
  wait_for_end_of_input();
  ::kill(watched, SIGTERM);
  ::_exit(0);
}

}  // namespace phalanx
