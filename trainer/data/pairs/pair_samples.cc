// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/pair_samples.h"

#include <fmt/format.h>

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

std::string use_of_pairs(Phase phase, std::span<const std::filesystem::path> given_files) {
  if (phase == Phase::train) return "training";
  if (given_files.empty()) return "validation";
  return fmt::format("validation on '{}'{}", given_files.front().string(),
                     given_files.size() > 1 ? ", ..." : "");
}

}  // namespace phalanx
