// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "trainer/base/descriptor.h"
#include "trainer/launch/launcher.h"

namespace phalanx {

/// What a forked process needs to become a rank.
struct RankChild {
  Environment environment;
  bool is_on_only_node = true;  ///< All ranks reach it over loopback.
  pid_t launcher = 0;           ///< The process that has forked it.
  int64_t threads = 1;          ///< What share_threads() is given.
  Descriptor report;            ///< The writing end of its report pipe.
  Descriptor out;               ///< What its stdout becomes; none: it stays the launcher's.
  Descriptor err;               ///< The same for stderr.
};

/// Makes the calling process die with its launcher. First of all in a rank: the process leaves at
/// once where the launcher has died meanwhile.
void die_with_launcher(pid_t launcher);

/// Runs a rank from its first to its last instruction: sets the process up, runs `rank_main`,
/// reports and leaves, without destructors of static objects, which are the launcher's.
[[noreturn]] void run_rank(RankChild child, const RankMain& rank_main);

/// Writes out what C and C++ streams hold: before a fork, or both processes would write it.
void flush_streams();

}  // namespace phalanx
