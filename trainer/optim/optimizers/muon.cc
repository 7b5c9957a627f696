// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/adam_optimizer.h"
#include "trainer/optim/fused_groups.h"
#include "trainer/optim/limits.h"
#include "trainer/optim/matrix_exchange.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/optim/unless.h"
#include "trainer/ranks/ranks.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// How a matrix's shape changes its learning rate (torch/optim/_muon.py, _adjust_lr).
enum class AdjustLr { original, match_rms_adamw };

struct MuonConfig {
  double lr = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  AdjustLr adjust_lr_fn = AdjustLr::original;
  std::array<double, 3> ns_coefficients = NewtonSchulz().coefficients;
  double eps = NewtonSchulz().eps;
  int64_t ns_steps = NewtonSchulz().steps;
  bool orthogonalize = true;
  double adamw_lr = 1e-3;
  std::array<double, 2> adamw_betas = {0.9, 0.999};
  double adamw_eps = 1e-8;
  double adamw_weight_decay = 1e-2;

  static void describe(config::Schema<MuonConfig>& s) {
    s.field("lr", &MuonConfig::lr, "of matrices: learning rate at factor 1 of the schedule")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("momentum", &MuonConfig::momentum, "share of the running mean of gradients that stays")
        .in_range(0, 1);
    s.field("nesterov", &MuonConfig::nesterov, "look ahead along the momentum");
    s.field("weight_decay", &MuonConfig::weight_decay,
            "of matrices, decoupled, of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
    s.field("adjust_lr_fn", &MuonConfig::adjust_lr_fn,
            "what lr is multiplied by: sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, "
            "columns)), with which lr and weight_decay of AdamW fit")
        .choices(
            {{"original", AdjustLr::original}, {"match_rms_adamw", AdjustLr::match_rms_adamw}});
    s.field("ns_coefficients", &MuonConfig::ns_coefficients,
            "of the Newton-Schulz iteration's polynomial")
        .in_range(-kLargestFactor, kLargestFactor);
    s.field("eps", &MuonConfig::eps, "the least norm that a matrix is divided by")
        .greater_than(0)
        .at_most(kLargestFactor);
    s.field("ns_steps", &MuonConfig::ns_steps, "steps of that iteration").in_range(0, 99);
    s.field("orthogonalize", &MuonConfig::orthogonalize,
            "false, of a group: AdamW moves its matrices too");
    s.field("adamw_lr", &MuonConfig::adamw_lr,
            "of embeddings, the head, norms and biases, which AdamW moves")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("adamw_betas", &MuonConfig::adamw_betas,
            "AdamW's decay rates of the means of g and g^2")
        .at_least(0)
        .less_than(1);
    s.field("adamw_eps", &MuonConfig::adamw_eps, "added to AdamW's denominator")
        .in_range(0, kLargestFactor);
    s.field("adamw_weight_decay", &MuonConfig::adamw_weight_decay,
            "AdamW's, of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
  }
};

/// A matrix with its momentum.
struct Matrix {
  NamedParameter parameter;
  std::vector<int64_t> shape;  ///< Of the whole.
  bool weight_decay = true;
  at::Tensor momentum_buffer;
};

std::vector<int64_t> whole_shape(const NamedParameter& parameter) {
  return parameter.shard ? parameter.shard->shape : parameter.tensor.sizes().vec();
}

/// Muon: the momentum of each matrix, made orthogonal, is what it moves by (Jordan et al. 2024,
/// kellerjordan.github.io/posts/muon). The calls of torch/optim/_muon.py, in the same order. Where
/// ranks hold parts or copies of a matrix, one of them makes it orthogonal, in bfloat16, as which
/// it is sent: the others get the same bits.
class Muon : public Optimizer {
 public:
  using Config = MuonConfig;

  explicit Muon(const Config& config)
      : config_(config),
        iteration_{
            .coefficients = config.ns_coefficients, .eps = config.eps, .steps = config.ns_steps},
        others_({.decay = Decay::decoupled,
                 .lr = config.adamw_lr,
                 .betas = config.adamw_betas,
                 .eps = config.adamw_eps,
                 .weight_decay = config.adamw_weight_decay}) {}

  double base_lr() const override { return config_.lr; }
  int64_t states_of(const NamedParameter& parameter) const override {
    return is_orthogonalized(parameter) ? 1 : 2;
  }
  void join(const Ranks& ranks) override { ranks_ = ranks; }

  void bind(std::vector<ParameterGroup> groups) override {
    matrices_.clear();
    std::vector<NamedParameter> exchanged;
    for (ParameterGroup& group : groups) {
      std::vector<NamedParameter> others;
      for (NamedParameter& parameter : group.parameters) {
        if (!is_orthogonalized(parameter)) {
          others.push_back(std::move(parameter));
          continue;
        }
        exchanged.push_back(parameter);
        auto shape = whole_shape(parameter);
        at::Tensor momentum = zero_state(parameter.tensor);
        matrices_.push_back({.parameter = std::move(parameter),
                             .shape = std::move(shape),
                             .weight_decay = group.weight_decay,
                             .momentum_buffer = std::move(momentum)});
      }
      group.parameters = std::move(others);
    }
    std::erase_if(groups, [](const ParameterGroup& group) { return group.parameters.empty(); });
    exchange_ = MatrixExchange(ranks_, exchanged);
    others_.bind(std::move(groups));
  }

  // AdamW's rate goes with it.
  void step(double lr) override { move(lr, config_.lr == 0 ? 0 : lr / config_.lr, {}); }
  void step_unless(const at::Tensor& skip, double lr) override {
    move(lr, config_.lr == 0 ? 0 : lr / config_.lr, skip);
  }
  void step_by(double factor, const at::Tensor& skip) override {
    move(config_.lr * factor, factor, skip);
  }

  std::vector<ShardedTensorView> state() override {
    std::vector<ShardedTensorView> views;
    for (const Matrix& matrix : matrices_) {
      views.push_back(state_view(matrix.parameter, "momentum_buffer", matrix.momentum_buffer));
    }
    for (ShardedTensorView& view : others_.state()) views.push_back(std::move(view));
    return views;
  }

 private:
  // AdamW moves all else.
  bool is_orthogonalized(const NamedParameter& parameter) const {
    return config_.orthogonalize && whole_shape(parameter).size() == 2 &&
           !parameter.is_embedding_or_head;
  }

  void move(double lr, double factor, const at::Tensor& skip) {
    const c10::NoGradGuard no_grad;
    std::vector<std::size_t> active;
    std::vector<at::Tensor> updates;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      if (!matrices_[i].parameter.tensor.grad().defined()) continue;
      active.push_back(i);
      updates.push_back(direction(matrices_[i], skip));
    }
    exchange_.run(active, updates, [this](std::size_t, const at::Tensor& whole) {
      return orthogonalized(whole, iteration_);
    });
    for (std::size_t i = 0; i < active.size(); ++i) {
      apply(matrices_[active[i]], updates[i], lr, skip);
    }
    others_.step_unless(skip, config_.adamw_lr * factor);
  }

  // In bfloat16. What must not move is led along its own momentum, which leaves that as it is.
  at::Tensor direction(const Matrix& matrix, const at::Tensor& skip) const {
    const at::Tensor& momentum = matrix.momentum_buffer;
    at::Tensor gradient = matrix.parameter.tensor.grad().to(momentum.scalar_type());
    gradient = Unless(skip).or_else({gradient}, momentum).front();
    momentum.lerp_(gradient, 1 - config_.momentum);
    const at::Tensor update =
        config_.nesterov ? gradient.lerp(momentum, config_.momentum) : momentum;
    return update.to(at::kBFloat16, /*non_blocking=*/false, /*copy=*/true);
  }

  void apply(const Matrix& matrix, const at::Tensor& update, double lr,
             const at::Tensor& skip) const {
    const at::Tensor& weight = matrix.parameter.tensor;
    const double decay = matrix.weight_decay ? config_.weight_decay : 0.0;
    const double rate = lr * adjustment(matrix.shape);
    const Unless unless(skip);
    unless.multiply({weight}, 1 - lr * decay);
    std::vector<at::Tensor> updates{update};
    unless.replace(updates, 0);
    weight.add_(updates.front(), -rate);
  }

  double adjustment(const std::vector<int64_t>& shape) const {
    const auto rows = static_cast<double>(shape[0]);
    const auto columns = static_cast<double>(shape[1]);
    switch (config_.adjust_lr_fn) {
      case AdjustLr::original:
        return std::sqrt(std::max(1.0, rows / columns));
      case AdjustLr::match_rms_adamw:
        return 0.2 * std::sqrt(std::max(rows, columns));
    }
    return 1;
  }

  Config config_;
  NewtonSchulz iteration_;
  Ranks ranks_;
  std::vector<Matrix> matrices_;
  MatrixExchange exchange_;
  AdamOptimizer others_;
};

REGISTER_OPTIMIZER("muon", Muon);

}  // namespace
}  // namespace phalanx
