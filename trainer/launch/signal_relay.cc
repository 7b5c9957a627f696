// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/signal_relay.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

namespace phalanx {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

// Under nohup, SIGHUP is ignored; a signal that is blocked would be queued all the same.
sigset_t relayed_signals() {
  sigset_t set = set_of({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCHLD});
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) sigdelset(&set, SIGHUP);
  return set;
}

void replace_action(int signal, void (*handler)(int), struct sigaction& old) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &old);
}

}  // namespace

SignalRelay::SignalRelay()
    : relayed_(relayed_signals()),
      source_(take_descriptor(::signalfd(-1, &relayed_, SFD_NONBLOCK | SFD_CLOEXEC),
                              "receive signals")) {
  sigprocmask(SIG_BLOCK, &relayed_, &old_mask_);
  replace_action(SIGPIPE, SIG_IGN, old_pipe_);
  // Where SIGCHLD is ignored, as some parents leave it, nothing could be learnt of a child's end.
  replace_action(SIGCHLD, SIG_DFL, old_child_);
}

// A signal that came last asked for the end that has come: it must not end the command that reports
// it.
SignalRelay::~SignalRelay() {
  if (source_.is_open()) take();
  restore();
}

std::vector<int> SignalRelay::take() {
  std::vector<int> signals;
  signalfd_siginfo info;
  while (::read(source_.number(), &info, sizeof(info)) == sizeof(info)) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

void SignalRelay::stop_here() const {
  const sigset_t stop = set_of({SIGTSTP});
  ::raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void SignalRelay::leave_to_child() {
  source_.close();
  restore();
}

void SignalRelay::restore() const {
  sigaction(SIGPIPE, &old_pipe_, nullptr);
  sigaction(SIGCHLD, &old_child_, nullptr);
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace phalanx
