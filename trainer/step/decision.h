// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What a rank does where all ranks do the same.
struct Decision {
  int64_t number = 0;  ///< 0: it updates all optimizers; others are a step's own.
  std::string text;    ///< "skips"

  static Decision update() { return {.number = 0, .text = "updates"}; }
  static Decision skip() { return {.number = -2, .text = "skips"}; }
};

/// Throws std::logic_error on all ranks where some decide otherwise, or have logged other `names`
/// by now ("loss, size") in this step. Every rank calls it.
void require_agreement(const Decision& decision, const std::string& names, int64_t step,
                       const Ranks& ranks);

}  // namespace phalanx
