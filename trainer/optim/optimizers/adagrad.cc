// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/full_like.h>

#include <cstddef>
#include <optional>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/elementwise_optimizer.h"
#include "trainer/optim/limits.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct AdagradConfig {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  static void describe(config::Schema<AdagradConfig>& s) {
    s.field("lr", &AdagradConfig::lr, "learning rate at factor 1 of the schedule")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field(
         "lr_decay", &AdagradConfig::lr_decay,
         "divides the learning rate by 1 + lr_decay * (updates of the parameter before this one)")
        .in_range(0, kLargestFactor);
    s.field("weight_decay", &AdagradConfig::weight_decay, "of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
    s.field("initial_accumulator_value", &AdagradConfig::initial_accumulator_value,
            "what the sum of g^2 begins with")
        .in_range(0, kLargestFactor);
    s.field("eps", &AdagradConfig::eps, "added to the denominator").in_range(0, kLargestFactor);
    s.field("maximize", &AdagradConfig::maximize, "climb the objective instead of descending it");
  }
};

/// Adagrad (Duchi, Hazan and Singer, 2011) with the calls that torch/optim/adagrad.py makes for
/// fused=True: the weights are bitwise those of Python.
class Adagrad : public ElementwiseOptimizer {
 public:
  using Config = AdagradConfig;

  explicit Adagrad(const Config& config)
      : ElementwiseOptimizer(
            {{.name = "sum",
              .first = [first = config.initial_accumulator_value](
                           const at::Tensor& parameter) { return sum_from(first, parameter); }},
             counted_steps()}),
        config_(config) {}

  double base_lr() const override { return config_.lr; }

 private:
  enum State : std::size_t { kSum, kSteps };

  static at::Tensor sum_from(double first, const at::Tensor& parameter) {
    return first == 0 ? zero_state(parameter) : at::full_like(parameter.detach(), first);
  }

  void update(const ActiveParameters& active, const at::Tensor& skip, double lr) const override {
    const TensorsAt steps = active.state(kSteps);
    count_step(steps);
    at::_fused_adagrad_(active.parameters(), active.gradients, active.state(kSum), steps, lr,
                        config_.lr_decay, active.decay(config_.weight_decay), config_.eps,
                        config_.maximize, /*grad_scale=*/std::nullopt,
                        skip.defined() ? std::optional(skip) : std::nullopt);
    uncount_step(steps, skip);
  }

  Config config_;
};

REGISTER_OPTIMIZER("adagrad", Adagrad);

}  // namespace
}  // namespace phalanx
