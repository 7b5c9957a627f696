// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/adam_optimizer.h"
#include "trainer/optim/limits.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

template <Decay decay>
struct AdamConfig {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = decay == Decay::decoupled ? 1e-2 : 0.0;
  bool amsgrad = false;
  bool maximize = false;

  static void describe(config::Schema<AdamConfig>& s) {
    s.field("lr", &AdamConfig::lr, "learning rate at factor 1 of the schedule")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("betas", &AdamConfig::betas, "decay rates of the running means of g and g^2")
        .at_least(0)
        .less_than(1);
    s.field("eps", &AdamConfig::eps, "added to the denominator").in_range(0, kLargestFactor);
    s.field("weight_decay", &AdamConfig::weight_decay, "of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
    s.field("amsgrad", &AdamConfig::amsgrad, "divide by the largest second moment seen so far");
    s.field("maximize", &AdamConfig::maximize, "climb the objective instead of descending it");
  }
};

template <Decay decay>
class Adam : public AdamOptimizer {
 public:
  using Config = AdamConfig<decay>;

  explicit Adam(const Config& config)
      : AdamOptimizer({.decay = decay,
                       .lr = config.lr,
                       .betas = config.betas,
                       .eps = config.eps,
                       .weight_decay = config.weight_decay,
                       .amsgrad = config.amsgrad,
                       .maximize = config.maximize}) {}
};

REGISTER_OPTIMIZER("adam", Adam<Decay::coupled>);
REGISTER_OPTIMIZER("adamw", Adam<Decay::decoupled>);

}  // namespace
}  // namespace phalanx
