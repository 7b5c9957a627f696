// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// A loss over a run: its last value and its best one, for the end.
class LossTrack {
 public:
  /// Steps do not fall, except after `forget_after`.
  void add(double loss, int64_t step);
  /// A guard has undone all steps behind this one.
  void forget_after(int64_t step);
  /// "\n  train loss  last 0.5, best 0.25 at step 7" behind that name; without the last one where
  /// that is undone; empty without any.
  std::string line(const char* name) const;

 private:
  struct Loss {
    double value = 0;
    int64_t step = 0;
  };

  std::vector<Loss> bests_;  ///< Each was the best until the next one, by step.
  std::optional<Loss> last_;
};

}  // namespace phalanx
