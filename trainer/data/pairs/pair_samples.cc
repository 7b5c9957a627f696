// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/pair_samples.h"

#include <algorithm>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"

namespace phalanx {

CutPairs look_at_pairs(const PairSamples& samples, bool may_break) {
  constexpr int64_t kMost = 100;
  const int64_t count = std::min(samples.size(), kMost);
  CutPairs found;
  for (int64_t i = 0; i < count; ++i) {
    try {
      found.cut += samples.is_cut(i * samples.size() / count) ? 1 : 0;
      ++found.looked_at;
    } catch (const BrokenSampleError& error) {
      if (!may_break) throw UserError(error.what());
    }
  }
  return found;
}

}  // namespace phalanx
