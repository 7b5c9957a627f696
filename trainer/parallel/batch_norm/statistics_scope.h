// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "trainer/ranks/ranks.h"

namespace phalanx::batch_norm {

/// While it lives, batch normalization on this thread (at::batch_norm, and so
/// torch::nn::BatchNorm1d, 2d and 3d) computes its statistics over the batches of all of `ranks`;
/// nothing, or a world of one: each rank its own, as LibTorch does. The innermost counts. All ranks
/// run the same normalizations in the scope, and the backward pass of each, in the same order.
/// torch::nn::BatchNorm1d refuses a training input of [1, channels] on the rank that has it, before
/// its peers hear of it: use phalanx::BatchNorm1d where a rank may have one sample. For tensors of
/// CPUs, CUDA and PrivateUse1, outside of c10::InferenceMode.
class StatisticsScope {
 public:
  explicit StatisticsScope(std::optional<Ranks> ranks);
  StatisticsScope(const StatisticsScope&) = delete;
  StatisticsScope& operator=(const StatisticsScope&) = delete;
  ~StatisticsScope();

  /// Changes LibTorch's table of operators for all scopes to come; by itself the first scope does.
  /// Where other threads call operators later, call it before they do: the table has no lock.
  static void prepare();

  /// The ranks of this thread's innermost scope: to enter it once more for a forward pass that is
  /// computed again.
  static const std::optional<Ranks>& current();

 private:
  std::optional<Ranks> before_;
};

}  // namespace phalanx::batch_norm
