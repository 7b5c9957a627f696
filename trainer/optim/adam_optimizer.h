// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "trainer/optim/elementwise_optimizer.h"

namespace phalanx {

/// Where the weight decay acts: on the gradient, as in Adam with an L2 penalty (Kingma and Ba,
/// 2015), or on the weight itself, decoupled from the moments (Loshchilov and Hutter, 2019).
enum class Decay { coupled, decoupled };

/// The numbers of Adam and AdamW.
struct AdamRule {
  Decay decay = Decay::decoupled;
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam and AdamW: the calls that torch/optim/adam.py makes for fused=True, in the same order, so
/// that the weights are bitwise those of Python. torch::optim's own are not: they round differently
/// from the second step on.
class AdamOptimizer : public ElementwiseOptimizer {
 public:
  explicit AdamOptimizer(const AdamRule& rule);

  double base_lr() const override { return rule_.lr; }

 private:
  void update(const ActiveParameters& active, const at::Tensor& skip, double lr) const override;

  AdamRule rule_;
};

}  // namespace phalanx
