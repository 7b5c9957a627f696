// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <csignal>

namespace phalanx {

/// While it lives, signals that come from outside wait, for this thread and those that it starts:
/// they are for threads that expect them. What a thread brings upon itself does not wait.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t outer;
    sigfillset(&outer);
    for (const int own_fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
      sigdelset(&outer, own_fault);
    }
    pthread_sigmask(SIG_BLOCK, &outer, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace phalanx
