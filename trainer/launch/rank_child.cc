// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/rank_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "trainer/base/exit_codes.h"
#include "trainer/base/user_error.h"
#include "trainer/launch/abrupt_end.h"
#include "trainer/launch/report.h"
#include "trainer/topology/rank_threads.h"

namespace phalanx {
namespace {

void replace_descriptor(int number, const Descriptor& by, std::string_view operation) {
  if (::dup2(by.number(), number) < 0) throw_system_error(operation);
}

// The keyboard is the launcher's; a rank that read it would be stopped.
void set_up_streams(RankChild& child) {
  constexpr std::string_view kOperation = "redirect a rank's streams";
  const Descriptor nothing =
      take_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open /dev/null");
  replace_descriptor(STDIN_FILENO, nothing, kOperation);
  // Whole lines at once and as they are printed, so that those of several ranks do not mix.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (child.out.is_open()) replace_descriptor(STDOUT_FILENO, child.out, kOperation);
  if (child.err.is_open()) replace_descriptor(STDERR_FILENO, child.err, kOperation);
  child.out.close();
  child.err.close();
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void set_up_variables(const RankChild& child) {
  export_environment(child.environment);
  // Gloo would look the host's name up, and may find an address that other hosts reach, or none.
  if (child.is_on_only_node && !is_set("GLOO_SOCKET_IFNAME"))
    ::setenv("GLOO_SOCKET_IFNAME", "lo", 1);
  share_threads(child.threads);
}

// Never empty: an exit code without a message would be one that `rank_main` has returned.
std::string text_of(const std::exception& error) {
  const std::string text = error.what();
  return text.empty() ? "an exception without a message" : text;
}

RankOutcome run_guarded(RankChild& child, const RankMain& rank_main) {
  try {
    set_up_streams(child);
    set_up_variables(child);
    return rank_main(child.environment);
  } catch (const UserError& error) {
    return {kUsersMistake, text_of(error)};
  } catch (const std::exception& error) {
    return {kFailure, text_of(error)};
  } catch (...) {
    return {kFailure, "an exception that is no std::exception"};
  }
}

}  // namespace

void die_with_launcher(pid_t launcher) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(kFailure);
}

void run_rank(RankChild child, const RankMain& rank_main) {
  // A rank is in the background of its terminal: where that is set to stop such writers, rank 0
  // would be stopped by its first line.
  std::signal(SIGTTOU, SIG_IGN);
  report_abrupt_end_to(child.report);
  const RankOutcome outcome = run_guarded(child, rank_main);
  take_the_word();
  send_report(child.report, {outcome, LaunchClock::now()});
  flush_streams();
  ::_exit(outcome.exit_code);
}

void flush_streams() {
  std::cout.flush();
  std::cerr.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

}  // namespace phalanx
