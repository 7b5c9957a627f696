// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/stop_notice.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "trainer/base/bounded_text.h"
#include "trainer/base/persons_terminal.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/stop_wait.h"

namespace phalanx {
namespace {

// Read by a signal handler; set before it is installed.
int terminal = -1;
std::string_view begin_of_line;

// A line that cannot be written is lost.
void tell() {
  const int error = errno;
  BoundedText<512> line;
  line << begin_of_line << "stopping after " << StopWait::present()
       << "; Ctrl-C again to stop at once\n";
  [[maybe_unused]] const ssize_t written =
      ::write(terminal, line.view().data(), line.view().size());
  errno = error;
}

bool can_erase() {
  const char* kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace

void announce_stops(const Ranks& ranks) {
  if (!ranks.is_first()) return;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (!is_persons_terminal(descriptor)) continue;
    terminal = descriptor;
    // In the place of the live line, which comes again below it, and of the ^C that was typed.
    begin_of_line = can_erase() ? "\r\x1b[K" : "\n";
    StopSignal::when_first(tell);
    return;
  }
}

}  // namespace phalanx
