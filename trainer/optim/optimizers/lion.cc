// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_sign.h>

#include <array>

#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/elementwise_optimizer.h"
#include "trainer/optim/limits.h"
#include "trainer/optim/unless.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct LionConfig {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;

  static void describe(config::Schema<LionConfig>& s) {
    s.field("lr", &LionConfig::lr, "learning rate at factor 1 of the schedule")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("betas", &LionConfig::betas, "share of the momentum in the update, and its decay rate")
        .at_least(0)
        .less_than(1);
    s.field("weight_decay", &LionConfig::weight_decay, "decoupled, of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
  }
};

/// Lion: the sign of a momentum decides each step's direction (Chen et al. 2023, arXiv 2302.06675,
/// algorithm 2). It needs a learning rate 3 to 10 times smaller than AdamW's.
class Lion : public ElementwiseOptimizer {
 public:
  using Config = LionConfig;

  explicit Lion(const Config& config)
      : ElementwiseOptimizer({{.name = "exp_avg"}}), config_(config) {}

  double base_lr() const override { return config_.lr; }

 private:
  // A step that is skipped has a factor of 1, a direction of 0, the average for the gradient.
  void update(const ActiveParameters& active, const at::Tensor& skip, double lr) const override {
    const Unless unless(skip);
    const TensorsAt parameters = active.parameters();
    const TensorsAt averages = active.state(0);
    const auto gradients = unless.or_else(active.gradients, averages);
    if (const double decay = active.decay(config_.weight_decay); decay != 0) {
      unless.multiply(parameters, 1 - lr * decay);
    }
    auto directions = at::_foreach_lerp(averages, gradients, 1 - config_.betas[0]);
    at::_foreach_sign_(directions);
    unless.replace(directions, 0);
    at::_foreach_add_(parameters, directions, -lr);
    at::_foreach_lerp_(averages, gradients, 1 - config_.betas[1]);
  }

  Config config_;
};

REGISTER_OPTIMIZER("lion", Lion);

}  // namespace
}  // namespace phalanx
