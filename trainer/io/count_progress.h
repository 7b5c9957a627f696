// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/io/work_progress.h"

namespace phalanx {

/// How far some work is, in pieces that have a name.
struct CountProgress : WorkProgress {
  /// From the beginning, of so many `pieces`, a text that outlives the process.
  void begin_of(const char* pieces, uint64_t number, uint64_t before = 0) {
    unit = pieces;
    begin(number, before);
  }
};

}  // namespace phalanx
