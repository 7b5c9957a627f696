// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/fused_groups.h"
#include "trainer/optim/limits.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// Where the weight decay acts: on the gradient, as in Adam with an L2 penalty (Kingma and Ba,
/// 2015), or on the weight itself, decoupled from the moments (Loshchilov and Hutter, 2019).
enum class Decay { coupled, decoupled };

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

/// Parameters of one dtype with their state, index by index.
struct Moments {
  ParameterGroup group;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> exp_avg;
  std::vector<at::Tensor> exp_avg_sq;
  std::vector<at::Tensor> max_exp_avg_sq;  ///< Empty without amsgrad.
  std::vector<at::Tensor> step;
};

/// Adam and AdamW with the calls that torch/optim/adam.py makes for fused=True, in the same order,
/// so that the weights are bitwise those of Python. torch::optim's own are not: they round
/// differently from the second step on.
template <Decay decay>
class Adam : public Optimizer {
 public:
  using Config = AdamConfig<decay>;

  explicit Adam(Config config) : config_(std::move(config)) {}

  double base_lr() const override { return config_.lr; }
  int64_t states_per_element() const override { return config_.amsgrad ? 3 : 2; }

  void bind(std::vector<ParameterGroup> groups) override {
    bound_.clear();
    for (auto& group : split_by_dtype_and_device(std::move(groups))) {
      Moments moments;
      moments.group = std::move(group);
      moments.parameters = tensors_of(moments.group.parameters);
      for (const auto& parameter : moments.group.parameters) {
        moments.exp_avg.push_back(zero_state(parameter.tensor));
        moments.exp_avg_sq.push_back(zero_state(parameter.tensor));
        if (config_.amsgrad) moments.max_exp_avg_sq.push_back(zero_state(parameter.tensor));
        moments.step.push_back(zero_steps(parameter.tensor));
      }
      bound_.push_back(std::move(moments));
    }
  }

  void step(double lr) override { step_unless({}, lr); }

  void step_unless(const at::Tensor& skip, double lr) override {
    const c10::NoGradGuard no_grad;
    for (const auto& moments : bound_) update(moments, skip, lr);
  }

  std::vector<ShardedTensorView> state() override {
    std::vector<ShardedTensorView> views;
    for (const auto& moments : bound_) {
      for (size_t i = 0; i < moments.group.parameters.size(); ++i) {
        const NamedParameter& parameter = moments.group.parameters[i];
        views.push_back(state_view(parameter, "exp_avg", moments.exp_avg[i]));
        views.push_back(state_view(parameter, "exp_avg_sq", moments.exp_avg_sq[i]));
        if (config_.amsgrad) {
          views.push_back(state_view(parameter, "max_exp_avg_sq", moments.max_exp_avg_sq[i]));
        }
        views.push_back(state_view(parameter, "step", moments.step[i]));
      }
    }
    return views;
  }

 private:
  void update(const Moments& moments, const at::Tensor& skip, double lr) const {
    const Gradients gradients = gradients_in(moments.group.parameters);
    const std::vector<size_t>& active = gradients.positions;
    if (active.empty()) return;
    const TensorsAt steps(moments.step, active);
    count_step(steps);
    const double weight_decay = moments.group.weight_decay ? config_.weight_decay : 0.0;
    const auto call = [&](auto fused) {
      fused(TensorsAt(moments.parameters, active), gradients.tensors,
            TensorsAt(moments.exp_avg, active), TensorsAt(moments.exp_avg_sq, active),
            TensorsAt(moments.max_exp_avg_sq, active), steps, lr, config_.betas[0],
            config_.betas[1], weight_decay, config_.eps, config_.amsgrad, config_.maximize,
            /*grad_scale=*/std::nullopt, skip.defined() ? std::optional(skip) : std::nullopt);
    };
    if constexpr (decay == Decay::decoupled) {
      call([](const auto&... arguments) { at::_fused_adamw_(arguments...); });
    } else {
      call([](const auto&... arguments) { at::_fused_adam_(arguments...); });
    }
    uncount_step(steps, skip);
  }

  Config config_;
  std::vector<Moments> bound_;
};

REGISTER_OPTIMIZER("adam", Adam<Decay::coupled>);
REGISTER_OPTIMIZER("adamw", Adam<Decay::decoupled>);

}  // namespace
}  // namespace phalanx
