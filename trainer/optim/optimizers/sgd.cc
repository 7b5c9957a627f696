// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>

#include <cstddef>
#include <optional>
#include <string>

#include "trainer/config/tree/schema.h"
#include "trainer/optim/elementwise_optimizer.h"
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

// Tells the first step, which takes the gradient undampened; also counts later ones that a device
// has skipped. On the host, where it is read in every step; no kernel takes it.
at::Tensor no_steps(const at::Tensor& /*parameter*/) { return at::zeros({}, at::kFloat); }

/// Stochastic gradient descent with the calls that torch/optim/sgd.py makes for fused=True: the
/// weights are bitwise those of Python. A parameter that gets its first gradient later than others
/// starts its momentum then, which Python's fused version cannot do.
class Sgd : public ElementwiseOptimizer {
 public:
  using Config = SgdConfig;

  explicit Sgd(const Config& config)
      : ElementwiseOptimizer({{.name = "momentum_buffer", .is_kept = config.momentum != 0},
                              {.name = "step",
                               .first = no_steps,
                               .is_kept = config.momentum != 0,
                               .is_per_element = false}}),
        config_(config) {}

  double base_lr() const override { return config_.lr; }

  void step_unless(const at::Tensor& skip, double lr) override {
    if (!skip.defined() || !begins_momentum()) return ElementwiseOptimizer::step_unless(skip, lr);
    // The host says which step is the first that moves: it waits for that one.
    if (skip.item().toDouble() == 0) step(lr);
  }

 private:
  enum State : std::size_t { kMomentum, kSteps };

  bool is_first_step(const BoundParameters& bound, std::size_t position) const {
    return config_.momentum != 0 && *bound.states[kSteps][position].const_data_ptr<float>() == 0;
  }

  // Whether a parameter moves that has no momentum yet.
  bool begins_momentum() const {
    for (const BoundParameters& each : bound()) {
      for (std::size_t i = 0; i < each.parameters.size(); ++i) {
        if (each.parameters[i].grad().defined() && is_first_step(each, i)) return true;
      }
    }
    return false;
  }

  void update(const ActiveParameters& active, const at::Tensor& skip, double lr) const override {
    ActiveParameters first{.bound = active.bound, .positions = {}, .gradients = {}};
    ActiveParameters later = first;
    for (std::size_t i = 0; i < active.positions.size(); ++i) {
      const std::size_t position = active.positions[i];
      ActiveParameters& part = is_first_step(active.bound, position) ? first : later;
      part.positions.push_back(position);
      part.gradients.push_back(active.gradients[i]);
    }
    move(first, /*is_first_step=*/true, skip, lr);
    move(later, /*is_first_step=*/false, skip, lr);
  }

  void move(const ActiveParameters& active, bool is_first_step, const at::Tensor& skip,
            double lr) const {
    if (active.positions.empty()) return;
    at::_fused_sgd_(active.parameters(), active.gradients, active.state(kMomentum),
                    active.decay(config_.weight_decay), config_.momentum, lr, config_.dampening,
                    config_.nesterov, config_.maximize, is_first_step,
                    /*grad_scale=*/std::nullopt,
                    skip.defined() ? std::optional(skip) : std::nullopt);
    if (config_.momentum != 0) count_step(active.state(kSteps));
  }

  Config config_;
};

REGISTER_OPTIMIZER("sgd", Sgd);

}  // namespace
}  // namespace phalanx
