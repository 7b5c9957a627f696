// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

/// Where the weight decay acts: on the gradient, as in Adam with an L2 penalty (Kingma and Ba,
/// 2015), or on the weight itself, decoupled from the moments (Loshchilov and Hutter, 2019).
enum class Decay { coupled, decoupled };

/// The numbers of Adam and AdamW but the learning rate.
struct AdamRule {
  Decay decay = Decay::decoupled;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

/// Parameters that Adam moves, with their moments: the calls that torch/optim/adam.py makes for
/// fused=True, in the same order, so that the weights are bitwise those of Python. torch::optim's
/// own are not: they round differently from the second step on.
class AdamMoments {
 public:
  explicit AdamMoments(const AdamRule& rule) : rule_(rule) {}

  /// As Optimizer's.
  void bind(std::vector<ParameterGroup> groups);
  /// One update; `skip` as in Optimizer::step_unless, undefined: it moves.
  void step(double lr, const at::Tensor& skip) const;
  std::vector<ShardedTensorView> state() const;

 private:
  /// Parameters of one dtype with their state, index by index.
  struct Moments {
    ParameterGroup group;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> exp_avg;
    std::vector<at::Tensor> exp_avg_sq;
    std::vector<at::Tensor> max_exp_avg_sq;  ///< Empty without amsgrad.
    std::vector<at::Tensor> step;
  };

  void update(const Moments& moments, const at::Tensor& skip, double lr) const;

  AdamRule rule_;
  std::vector<Moments> bound_;
};

}  // namespace phalanx
