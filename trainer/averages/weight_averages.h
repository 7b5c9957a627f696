// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/stateful.h"

namespace phalanx {

/// How weights are averaged.
enum class AverageMethod {
  exponential,  ///< The average moves by 1 - decay of the way to the weights.
  equal,        ///< All that were taken count alike (stochastic weight averaging).
};

/// The average of a model's weights over steps, as torch.optim.swa_utils.AveragedModel computes it.
/// Each rank averages what it holds of the weights.
class WeightAverages : public Stateful {
 public:
  /// `weights` are averaged: views of floating-point tensors. `decay` is the exponential method's.
  WeightAverages(AverageMethod method, double decay, std::vector<ShardedTensorView> weights);

  /// Takes the present weights into the average; the first are the average.
  void update();

  /// How often the weights were taken.
  int64_t updates() const { return updates_; }

  /// Puts the average into the weights' place and keeps the weights in its own; once more, and both
  /// have the bits that they had. Takes memory for one of the tensors. Does nothing before the
  /// first update.
  void exchange();

  std::vector<ShardedTensorView> tensors() override { return averages_; }
  std::string json() const override;
  void restore(std::string_view json) override;

 private:
  AverageMethod method_;
  double decay_;
  std::vector<ShardedTensorView> weights_;
  std::vector<ShardedTensorView> averages_;  ///< Zeros before the first update.
  int64_t updates_ = 0;
};

/// How often weights were taken into the average whose WeightAverages::json this is. Throws
/// UserError for another text.
int64_t updates_in(std::string_view json);

}  // namespace phalanx
