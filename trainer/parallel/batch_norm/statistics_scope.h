// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "trainer/ranks/ranks.h"

namespace phalanx::batch_norm {

/// While it lives, batch normalization on this thread (at::batch_norm, and so
/// torch::nn::BatchNorm1d, 2d and 3d) computes its statistics over the batches of all of `ranks`;
/// nothing, or a world of one: each rank its own, as LibTorch does. The innermost counts. All ranks
/// run the same normalizations in the scope, and the backward pass of each, in the same order.
class StatisticsScope {
 public:
  explicit StatisticsScope(std::optional<Ranks> ranks);
  StatisticsScope(const StatisticsScope&) = delete;
  StatisticsScope& operator=(const StatisticsScope&) = delete;
  ~StatisticsScope();

  /// The ranks of this thread's innermost scope: to enter it once more for a forward pass that is
  /// computed again.
  static const std::optional<Ranks>& current();

 private:
  std::optional<Ranks> before_;
};

}  // namespace phalanx::batch_norm
