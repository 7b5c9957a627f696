// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/loss_track.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/base/unsigned_nan.h"

namespace phalanx {

void LossTrack::add(double loss, int64_t step) {
  last_ = Loss{.value = loss, .step = step};
  if (bests_.empty() || loss < bests_.back().value || std::isnan(bests_.back().value)) {
    bests_.push_back(*last_);
  }
}

void LossTrack::forget_after(int64_t step) {
  while (!bests_.empty() && bests_.back().step > step) bests_.pop_back();
  if (last_ && last_->step > step) last_.reset();
}

std::string LossTrack::line(const char* name) const {
  if (bests_.empty()) return "";
  const std::string last = last_ ? fmt::format("last {:.4f}, ", unsigned_nan(last_->value)) : "";
  return fmt::format("\n  {:<12}{}best {:.4f} at step {}", name, last,
                     unsigned_nan(bests_.back().value), bests_.back().step);
}

}  // namespace phalanx
