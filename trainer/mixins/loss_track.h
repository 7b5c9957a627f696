// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace phalanx {

/// A loss over a run: its last value and its best one, for the end.
class LossTrack {
 public:
  void add(double loss, int64_t step);
  /// "\n  train loss  last 0.5, best 0.25 at step 7" behind that name; empty before the first.
  std::string line(const char* name) const;

 private:
  std::optional<double> best_;
  int64_t best_step_ = 0;
  double last_ = 0;
};

}  // namespace phalanx
