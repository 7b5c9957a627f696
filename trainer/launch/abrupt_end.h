// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/base/descriptor.h"
#include "trainer/launch/launcher.h"
#include "trainer/ranks/failures/shared_text.h"

namespace phalanx {

/// How a rank speaks of an end that comes from a thread of its own, or from a signal.
struct LastWords {
  /// What its line on standard error begins with, without a launcher: "error: rank 1: ".
  std::string prefix;
  /// What the rank is doing.
  std::shared_ptr<const SharedText> activity;
  /// What an exception that nobody catches comes to (std::terminate). Called in a thread of its
  /// own, which is given up after some seconds, while the rank's other threads go on.
  std::function<RankOutcome(const std::exception& error)> outcome_of;
  /// Tells that outcome without a launcher.
  std::function<void(const RankOutcome& outcome)> tell;
  /// Records the end without a launcher, after it was told. Async-signal-safe.
  void (*record)(int signal, std::string_view error) = nullptr;
};

/// While it lives, an end of this process by an exception that no thread catches (c10d's watchdog
/// ends a rank so when a collective of NCCL fails or times out), by abort() or by a crash (SIGSEGV,
/// SIGBUS, SIGFPE, SIGILL) is told to the launcher, or else on standard error; also where the stack
/// of the thread that made this is full. The process then dies of the signal as it would without.
/// One at a time.
class AbruptEnd {
 public:
  /// The words are kept for good: what a thread has to tell may come after this has ended.
  explicit AbruptEnd(LastWords words);
  AbruptEnd(const AbruptEnd&) = delete;
  AbruptEnd& operator=(const AbruptEnd&) = delete;
  ~AbruptEnd();
};

/// Sets where the launcher that has forked this process reads its report. The pipe stays open as
/// long as the process.
void report_abrupt_end_to(const Descriptor& pipe);

/// Whether a launcher reads this process's report.
bool has_report_pipe();

/// Makes the calling thread the one that tells this process's end. Where another one does already,
/// it does not return.
void take_the_word();

}  // namespace phalanx
