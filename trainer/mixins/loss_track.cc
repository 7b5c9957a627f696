// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/loss_track.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/base/unsigned_nan.h"

namespace phalanx {

void LossTrack::add(double loss, int64_t step) {
  last_ = loss;
  if (!best_ || loss < *best_ || std::isnan(*best_)) {
    best_ = loss;
    best_step_ = step;
  }
}

std::string LossTrack::line(const char* name) const {
  if (!best_) return "";
  return fmt::format("\n  {:<12}last {:.4f}, best {:.4f} at step {}", name, unsigned_nan(last_),
                     unsigned_nan(*best_), best_step_);
}

}  // namespace phalanx
