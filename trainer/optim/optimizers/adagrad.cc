// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/fused_groups.h"
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

/// Parameters of one dtype with their state, index by index.
struct SquareSums {
  ParameterGroup group;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> sum;
  std::vector<at::Tensor> step;
};

/// Adagrad (Duchi, Hazan and Singer, 2011) with the calls that torch/optim/adagrad.py makes for
/// fused=True: the weights are bitwise those of Python.
class Adagrad : public Optimizer {
 public:
  using Config = AdagradConfig;

  explicit Adagrad(Config config) : config_(config) {}

  double base_lr() const override { return config_.lr; }
  int64_t states_per_element() const override { return 1; }

  void bind(std::vector<ParameterGroup> groups) override {
    bound_.clear();
    for (auto& group : split_by_dtype_and_device(std::move(groups))) {
      SquareSums sums;
      sums.group = std::move(group);
      sums.parameters = tensors_of(sums.group.parameters);
      for (const auto& parameter : sums.group.parameters) {
        sums.sum.push_back(first_sum(parameter.tensor));
        sums.step.push_back(zero_steps(parameter.tensor));
      }
      bound_.push_back(std::move(sums));
    }
  }

  void step(double lr) override { step_unless({}, lr); }

  void step_unless(const at::Tensor& skip, double lr) override {
    const c10::NoGradGuard no_grad;
    for (const auto& sums : bound_) update(sums, skip, lr);
  }

  std::vector<ShardedTensorView> state() override {
    std::vector<ShardedTensorView> views;
    for (const auto& sums : bound_) {
      for (size_t i = 0; i < sums.sum.size(); ++i) {
        const NamedParameter& parameter = sums.group.parameters[i];
        views.push_back(state_view(parameter, "sum", sums.sum[i]));
        views.push_back(state_view(parameter, "step", sums.step[i]));
      }
    }
    return views;
  }

 private:
  at::Tensor first_sum(const at::Tensor& parameter) const {
    if (config_.initial_accumulator_value == 0) return zero_state(parameter);
    return at::full_like(parameter.detach(), config_.initial_accumulator_value);
  }

  void update(const SquareSums& sums, const at::Tensor& skip, double lr) const {
    const Gradients gradients = gradients_in(sums.group.parameters);
    const std::vector<size_t>& active = gradients.positions;
    if (active.empty()) return;
    const TensorsAt steps(sums.step, active);
    count_step(steps);
    const double weight_decay = sums.group.weight_decay ? config_.weight_decay : 0.0;
    at::_fused_adagrad_(TensorsAt(sums.parameters, active), gradients.tensors,
                        TensorsAt(sums.sum, active), steps, lr, config_.lr_decay, weight_decay,
                        config_.eps, config_.maximize, /*grad_scale=*/std::nullopt,
                        skip.defined() ? std::optional(skip) : std::nullopt);
    uncount_step(steps, skip);
  }

  Config config_;
  std::vector<SquareSums> bound_;
};

REGISTER_OPTIMIZER("adagrad", Adagrad);

}  // namespace
}  // namespace phalanx
