// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trainer/run/run_progress.h"

namespace phalanx {

/// While it lives, a signal that ends this process (abort(), a crash, a second SIGINT) leaves the
/// line in the run's ends.jsonl that nobody else could write: that of a rank which no process of
/// ours has forked. One at a time. Nothing is written where the folder's path is too long.
class LastEnd {
 public:
  /// `progress` must outlive it.
  LastEnd(const BegunStart& start, const RunProgress& progress);
  LastEnd(const LastEnd&) = delete;
  LastEnd& operator=(const LastEnd&) = delete;
  ~LastEnd();

  /// Writes the line, once, if there is a LastEnd. Async-signal-safe.
  static void record(int signal, std::string_view error);
};

}  // namespace phalanx
