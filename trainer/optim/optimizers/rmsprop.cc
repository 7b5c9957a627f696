// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>

#include <cstddef>
#include <vector>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/elementwise_optimizer.h"
#include "trainer/optim/limits.h"
#include "trainer/optim/unless.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct RmspropConfig {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;

  static void describe(config::Schema<RmspropConfig>& s) {
    s.field("lr", &RmspropConfig::lr, "learning rate at factor 1 of the schedule")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("alpha", &RmspropConfig::alpha, "decay rate of the running mean of g^2")
        .at_least(0)
        .less_than(1);
    s.field("eps", &RmspropConfig::eps, "added to the denominator").in_range(0, kLargestFactor);
    s.field("weight_decay", &RmspropConfig::weight_decay, "of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
    s.field("momentum", &RmspropConfig::momentum, "share of the last update that is kept")
        .in_range(0, kLargestFactor);
    s.field("centered", &RmspropConfig::centered,
            "divide by the standard deviation of the gradient, not by the root of its square");
    s.field("maximize", &RmspropConfig::maximize, "climb the objective instead of descending it");
  }
};

/// RMSprop (Tieleman and Hinton, 2012) with the calls that torch/optim/rmsprop.py makes: the
/// weights are bitwise those of Python. There is no fused kernel of it.
class Rmsprop : public ElementwiseOptimizer {
 public:
  using Config = RmspropConfig;

  explicit Rmsprop(const Config& config)
      : ElementwiseOptimizer({{.name = "square_avg"},
                              {.name = "grad_avg", .is_kept = config.centered},
                              {.name = "momentum_buffer", .is_kept = config.momentum > 0}}),
        config_(config) {}

  double base_lr() const override { return config_.lr; }

 private:
  enum State : std::size_t { kSquares, kMeans, kMomentum };

  void update(const ActiveParameters& active, const at::Tensor& skip, double lr) const override {
    const Unless unless(skip);
    const TensorsAt parameters = active.parameters();
    std::vector<at::Tensor> gradients = active.gradients;
    if (config_.maximize) gradients = at::_foreach_neg(gradients);
    if (const double decay = active.decay(config_.weight_decay); decay != 0) {
      gradients = at::_foreach_add(gradients, parameters, decay);
    }
    const TensorsAt means = active.state(kMeans);
    if (config_.centered) {
      at::_foreach_lerp_(means, unless.or_else(gradients, means), 1 - config_.alpha);
    }
    unless.replace(gradients, 0);
    const TensorsAt squares = active.state(kSquares);
    unless.multiply(squares, config_.alpha);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - config_.alpha);
    const std::vector<at::Tensor> denominators = denominators_of(squares, means, unless);
    if (config_.momentum == 0) {
      return at::_foreach_addcdiv_(parameters, gradients, denominators, -lr);
    }
    const TensorsAt buffers = active.state(kMomentum);
    unless.multiply(buffers, config_.momentum);
    at::_foreach_addcdiv_(buffers, gradients, denominators);
    std::vector<at::Tensor> moves = at::TensorList(buffers).vec();
    unless.replace(moves, 0);
    at::_foreach_add_(parameters, moves, -lr);
  }

  std::vector<at::Tensor> denominators_of(at::TensorList squares, at::TensorList means,
                                          const Unless& unless) const {
    std::vector<at::Tensor> roots;
    if (config_.centered) {
      roots = at::_foreach_addcmul(squares, means, means, -1);
      at::_foreach_sqrt_(roots);
    } else {
      roots = at::_foreach_sqrt(squares);
    }
    at::_foreach_add_(roots, config_.eps);
    unless.replace(roots, 1);  // 0 / 0 is no number
    return roots;
  }

  Config config_;
};

REGISTER_OPTIMIZER("rmsprop", Rmsprop);

}  // namespace
}  // namespace phalanx
