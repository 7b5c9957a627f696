// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/fused_groups.h"
#include "trainer/optim/limits.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct SgdConfig {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool maximize = false;

  static void describe(config::Schema<SgdConfig>& s) {
    s.field("lr", &SgdConfig::lr, "learning rate at factor 1 of the schedule")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("momentum", &SgdConfig::momentum, "share of the last update that is kept")
        .in_range(0, kLargestFactor);
    s.field("dampening", &SgdConfig::dampening, "share of the gradient kept out of the momentum")
        .in_range(-kLargestFactor, kLargestFactor);
    s.field("nesterov", &SgdConfig::nesterov, "look ahead along the momentum");
    s.field("weight_decay", &SgdConfig::weight_decay, "of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
    s.field("maximize", &SgdConfig::maximize, "climb the objective instead of descending it");
    s.check([](const SgdConfig& c) -> std::optional<std::string> {
      if (!c.nesterov || (c.momentum > 0 && c.dampening == 0)) return std::nullopt;
      return "nesterov needs a momentum above 0 and a dampening of 0";
    });
    s.ineffective({"dampening"}, "momentum is 0",
                  [](const SgdConfig& c) { return c.momentum == 0; });
  }
};

/// Parameters of one dtype with their state, index by index; without momentum there is none.
struct Velocity {
  ParameterGroup group;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> momentum_buffer;
  /// Tells the first step, which takes the gradient undampened; also counts later ones that a
  /// device has skipped.
  std::vector<at::Tensor> step;
};

/// Stochastic gradient descent with the calls that torch/optim/sgd.py makes for fused=True: the
/// weights are bitwise those of Python. A parameter that gets its first gradient later than others
/// starts its momentum then, which Python's fused version cannot do.
class Sgd : public Optimizer {
 public:
  using Config = SgdConfig;

  explicit Sgd(Config config) : config_(config) {}

  double base_lr() const override { return config_.lr; }
  int64_t states_per_element() const override { return config_.momentum > 0 ? 1 : 0; }

  void bind(std::vector<ParameterGroup> groups) override {
    bound_.clear();
    for (auto& group : split_by_dtype_and_device(std::move(groups))) {
      Velocity velocity;
      velocity.group = std::move(group);
      velocity.parameters = tensors_of(velocity.group.parameters);
      if (config_.momentum != 0) {
        for (const auto& parameter : velocity.group.parameters) {
          velocity.momentum_buffer.push_back(zero_state(parameter.tensor));
          // On the host, where it is read in every step; no kernel takes it.
          velocity.step.push_back(at::zeros({}, at::kFloat));
        }
      }
      bound_.push_back(std::move(velocity));
    }
  }

  void step(double lr) override { move(lr, {}); }

  void step_unless(const at::Tensor& skip, double lr) override {
    if (!begins_momentum()) return move(lr, skip);
    // The host says which step is the first that moves: it waits for that one.
    if (skip.item().toDouble() == 0) move(lr, {});
  }

  std::vector<ShardedTensorView> state() override {
    std::vector<ShardedTensorView> views;
    for (const auto& velocity : bound_) {
      for (size_t i = 0; i < velocity.momentum_buffer.size(); ++i) {
        const NamedParameter& parameter = velocity.group.parameters[i];
        views.push_back(state_view(parameter, "momentum_buffer", velocity.momentum_buffer[i]));
        views.push_back(state_view(parameter, "step", velocity.step[i]));
      }
    }
    return views;
  }

 private:
  bool is_first_step(const Velocity& velocity, size_t position) const {
    return config_.momentum != 0 && *velocity.step[position].const_data_ptr<float>() == 0;
  }

  // Whether a parameter moves that has no momentum yet.
  bool begins_momentum() const {
    for (const auto& velocity : bound_) {
      for (size_t i = 0; i < velocity.parameters.size(); ++i) {
        if (velocity.parameters[i].grad().defined() && is_first_step(velocity, i)) return true;
      }
    }
    return false;
  }

  // Without `skip`: moves.
  void move(double lr, const at::Tensor& skip) {
    const c10::NoGradGuard no_grad;
    for (const auto& velocity : bound_) {
      Gradients first;
      Gradients later;
      Gradients all = gradients_in(velocity.group.parameters);
      for (size_t i = 0; i < all.positions.size(); ++i) {
        const size_t position = all.positions[i];
        Gradients& part = is_first_step(velocity, position) ? first : later;
        part.positions.push_back(position);
        part.tensors.push_back(std::move(all.tensors[i]));
      }
      update(velocity, first, /*is_first_step=*/true, lr, skip);
      update(velocity, later, /*is_first_step=*/false, lr, skip);
    }
  }

  void update(const Velocity& velocity, const Gradients& gradients, bool is_first_step, double lr,
              const at::Tensor& skip) const {
    const std::vector<size_t>& active = gradients.positions;
    if (active.empty()) return;
    const double weight_decay = velocity.group.weight_decay ? config_.weight_decay : 0.0;
    at::_fused_sgd_(TensorsAt(velocity.parameters, active), gradients.tensors,
                    TensorsAt(velocity.momentum_buffer, active), weight_decay, config_.momentum, lr,
                    config_.dampening, config_.nesterov, config_.maximize, is_first_step,
                    /*grad_scale=*/std::nullopt,
                    skip.defined() ? std::optional(skip) : std::nullopt);
    if (config_.momentum != 0) count_step(TensorsAt(velocity.step, active));
  }

  Config config_;
  std::vector<Velocity> bound_;
};

REGISTER_OPTIMIZER("sgd", Sgd);

}  // namespace
}  // namespace phalanx
