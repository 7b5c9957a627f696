// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/call_order.h"

#include <utility>

namespace phalanx::fsdp {

void CallOrder::begin() {
  calls_.clear();
  place_ = 0;
  follows_ = true;
}

std::optional<CallOrder::Next> CallOrder::call(std::size_t unit, bool is_kept) {
  if (is_kept) calls_.push_back(unit);
  const std::size_t place = place_++;
  const bool is_same = place < known_.size() && known_[place] == unit;
  if (!is_same) follows_ = false;
  if (!is_same || place + 1 == known_.size()) return std::nullopt;
  return Next{.unit = known_[place + 1], .is_steady = follows_ && is_steady_};
}

void CallOrder::end() {
  is_steady_ = known_.empty() || calls_ == known_;
  known_ = std::exchange(calls_, {});
}

}  // namespace phalanx::fsdp
