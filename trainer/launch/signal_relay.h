// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <vector>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// Keeps signals from acting on the launcher for as long as it lives, and hands them out to be
/// passed on: SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, and SIGCHLD for ranks that end.
/// What was set before is restored at scope exit. For a process of one thread.
class SignalRelay {
 public:
  SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;
  ~SignalRelay();

  /// The signals that came since the last call; never waits.
  std::vector<int> take();
  /// Becomes readable when a signal comes.
  int descriptor() const { return source_.number(); }

  /// Lets SIGTSTP do to this process what it did before: it returns once the process goes on.
  void stop_here() const;

  /// In a forked child: restores what was set before, so that signals act on the child.
  void leave_to_child();

 private:
  void restore() const;

  sigset_t relayed_{};
  Descriptor source_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ = {};
  struct sigaction old_child_ = {};
};

}  // namespace phalanx
