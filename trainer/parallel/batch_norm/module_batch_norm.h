// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace torch::nn {
class Module;
}

namespace phalanx::batch_norm {

/// Batch normalization in a module's passes over the batches of all ranks: what an engine holds of
/// it. Nothing of the module is replaced, so that typed holders of torch::nn::BatchNorm work on.
class ModuleBatchNorm {
 public:
  /// All ranks call it. The module must live as long. The ranks get connections of their own for
  /// the statistics: on those of the engine, which may reduce gradients at another moment on each
  /// rank, the order could differ. Before threads call operators (StatisticsScope::prepare).
  ModuleBatchNorm(torch::nn::Module& module, const Ranks& ranks);

  /// Those that compute the statistics of a pass that begins now together; none: each its own, as
  /// while the module evaluates.
  std::optional<Ranks> ranks() const;

  /// What such passes move: running statistics and counters of torch::nn::BatchNorm1d, 2d and 3d,
  /// and of phalanx::BatchNorm1d.
  std::vector<at::Tensor> buffers() const;

 private:
  torch::nn::Module& module_;
  Ranks ranks_;
};

}  // namespace phalanx::batch_norm
