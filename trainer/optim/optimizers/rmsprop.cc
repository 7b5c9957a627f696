// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/fused_groups.h"
#include "trainer/optim/limits.h"
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

/// Parameters of one dtype with their state, index by index.
struct Averages {
  ParameterGroup group;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> square_avg;
  std::vector<at::Tensor> grad_avg;         ///< Empty unless centered.
  std::vector<at::Tensor> momentum_buffer;  ///< Empty without momentum.
};

/// What a step does where a device decides whether it is skipped: numbers that change nothing take
/// the place of those that must not be, as no kernel here reads `skip`. Without it nothing is
/// replaced.
class Unless {
 public:
  explicit Unless(const at::Tensor& skip) {
    if (skip.defined()) is_skipped_ = skip.to(at::kBool);
  }

  /// These, or tensors of `number`.
  void replace(std::vector<at::Tensor>& tensors, double number) const {
    if (!is_skipped_.defined()) return;
    for (at::Tensor& tensor : tensors) tensor = tensor.masked_fill(is_skipped_, number);
  }

  /// These, or `others`.
  std::vector<at::Tensor> or_else(const std::vector<at::Tensor>& tensors,
                                  at::TensorList others) const {
    if (!is_skipped_.defined()) return tensors;
    std::vector<at::Tensor> chosen;
    for (size_t i = 0; i < tensors.size(); ++i) {
      chosen.push_back(at::where(is_skipped_, others[i], tensors[i]));
    }
    return chosen;
  }

  /// Multiplies by `factor`, or by 1.
  void multiply(at::TensorList tensors, double factor) const {
    if (!is_skipped_.defined()) return at::_foreach_mul_(tensors, factor);
    const auto options = is_skipped_.options().dtype(at::kDouble);
    at::_foreach_mul_(tensors, at::full({}, factor, options).masked_fill_(is_skipped_, 1));
  }

 private:
  at::Tensor is_skipped_;
};

/// RMSprop (Tieleman and Hinton, 2012) with the calls that torch/optim/rmsprop.py makes: the
/// weights are bitwise those of Python. There is no fused kernel of it.
class Rmsprop : public Optimizer {
 public:
  using Config = RmspropConfig;

  explicit Rmsprop(Config config) : config_(config) {}

  double base_lr() const override { return config_.lr; }
  int64_t states_per_element() const override {
    return 1 + (config_.centered ? 1 : 0) + (config_.momentum > 0 ? 1 : 0);
  }

  void bind(std::vector<ParameterGroup> groups) override {
    bound_.clear();
    for (auto& group : split_by_dtype_and_device(std::move(groups))) {
      Averages averages;
      averages.group = std::move(group);
      averages.parameters = tensors_of(averages.group.parameters);
      for (const at::Tensor& parameter : averages.parameters) {
        averages.square_avg.push_back(zero_state(parameter));
        if (config_.centered) averages.grad_avg.push_back(zero_state(parameter));
        if (config_.momentum > 0) averages.momentum_buffer.push_back(zero_state(parameter));
      }
      bound_.push_back(std::move(averages));
    }
  }

  void step(double lr) override { step_unless({}, lr); }

  void step_unless(const at::Tensor& skip, double lr) override {
    const c10::NoGradGuard no_grad;
    const Unless unless(skip);
    for (const auto& averages : bound_) update(averages, unless, lr);
  }

  std::vector<ShardedTensorView> state() override {
    std::vector<ShardedTensorView> views;
    for (const auto& averages : bound_) {
      for (size_t i = 0; i < averages.square_avg.size(); ++i) {
        const NamedParameter& parameter = averages.group.parameters[i];
        views.push_back(state_view(parameter, "square_avg", averages.square_avg[i]));
        if (config_.centered) {
          views.push_back(state_view(parameter, "grad_avg", averages.grad_avg[i]));
        }
        if (config_.momentum > 0) {
          views.push_back(state_view(parameter, "momentum_buffer", averages.momentum_buffer[i]));
        }
      }
    }
    return views;
  }

 private:
  void update(const Averages& averages, const Unless& unless, double lr) const {
    auto [active, gradients] = gradients_in(averages.group.parameters);
    if (active.empty()) return;
    const TensorsAt parameters(averages.parameters, active);
    if (config_.maximize) gradients = at::_foreach_neg(gradients);
    if (averages.group.weight_decay && config_.weight_decay != 0) {
      gradients = at::_foreach_add(gradients, parameters, config_.weight_decay);
    }
    const TensorsAt means(averages.grad_avg, active);
    if (config_.centered) {
      at::_foreach_lerp_(means, unless.or_else(gradients, means), 1 - config_.alpha);
    }
    unless.replace(gradients, 0);
    const TensorsAt squares(averages.square_avg, active);
    unless.multiply(squares, config_.alpha);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - config_.alpha);
    const std::vector<at::Tensor> denominators = denominators_of(squares, means, unless);
    if (config_.momentum == 0) {
      return at::_foreach_addcdiv_(parameters, gradients, denominators, -lr);
    }
    const TensorsAt buffers(averages.momentum_buffer, active);
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
  std::vector<Averages> bound_;
};

REGISTER_OPTIMIZER("rmsprop", Rmsprop);

}  // namespace
}  // namespace phalanx
