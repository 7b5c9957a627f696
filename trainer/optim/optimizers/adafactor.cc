// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/fused_groups.h"
#include "trainer/optim/limits.h"
#include "trainer/optim/row_window.h"
#include "trainer/optim/sums_over_ranks.h"
#include "trainer/optim/unless.h"
#include "trainer/ranks/ranks.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// Elements of whole parameters whose updates are held at a time.
constexpr int64_t kElementsAtATime = int64_t{1} << 27;

struct AdafactorConfig {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  std::optional<double> eps1;
  double eps2 = 1e-3;
  double d = 1;
  double weight_decay = 0;
  bool maximize = false;

  static void describe(config::Schema<AdafactorConfig>& s) {
    s.field("lr", &AdafactorConfig::lr,
            "largest relative step: update n is at most min(lr, 1 / sqrt(n)) of a parameter's root "
            "mean square")
        .in_range(0, kLargestLearningRate)
        .resume_may_change();
    s.field("beta2_decay", &AdafactorConfig::beta2_decay,
            "the running means of g^2 take a share n^beta2_decay of update n's")
        .in_range(-kLargestFactor, 0);
    s.field("eps1", &AdafactorConfig::eps1,
            "least root of a mean of g^2 (torch's eps[0]); null: the dtype's epsilon")
        .in_range(0, kLargestFactor);
    s.field("eps2", &AdafactorConfig::eps2,
            "least root mean square of a parameter, for its step (torch's eps[1])")
        .in_range(0, kLargestFactor);
    s.field("d", &AdafactorConfig::d, "largest root mean square of an update, before the step")
        .in_range(1, kLargestFactor);
    s.field("weight_decay", &AdafactorConfig::weight_decay, "decoupled, of the groups that decay")
        .in_range(0, kLargestFactor)
        .resume_may_change();
    s.field("maximize", &AdafactorConfig::maximize, "climb the objective instead of descending it");
  }
};

/// A parameter of which this rank holds a part or all, with its state. That of rows and columns is
/// of the whole, on every rank.
struct Factored {
  NamedParameter parameter;
  bool weight_decay = true;
  bool is_split = false;           ///< Over ranks, all of which see it so.
  bool counts = true;              ///< In sums over ranks: no other one does with this part.
  int64_t elements = 0;            ///< Of the whole.
  std::optional<RowWindow> rows;   ///< None: a vector.
  at::Tensor row_var, column_var;  ///< Of a matrix.
  at::Tensor variance;             ///< Of a vector: this rank's part.
  at::Tensor step;
};

Factored factored(NamedParameter parameter, bool weight_decay, const Ranks& ranks) {
  const std::optional<ShardRange>& shard = parameter.shard;
  if (shard && shard->box) {
    throw std::logic_error("adafactor moves ranges of '" + parameter.name +
                           "', not of a box of it");
  }
  const auto shape = shard ? shard->shape : parameter.tensor.sizes().vec();
  const auto holders = shard ? static_cast<int64_t>(shard->replicas.size()) : ranks.world_size();
  Factored result;
  result.weight_decay = weight_decay;
  result.is_split = holders != ranks.world_size();
  result.counts = !shard || shard->replicas.front() == ranks.rank();
  result.elements = 1;
  for (const int64_t size : shape) result.elements *= size;
  // On the host, where it is read in every step.
  result.step = at::zeros({}, at::kFloat);
  if (shape.size() < 2) {
    result.variance = zero_state(parameter.tensor);
  } else {
    const int64_t begin = shard ? shard->begin : 0;
    result.rows.emplace(shape, begin, begin + parameter.tensor.numel());
    const auto options = parameter.tensor.options().requires_grad(false);
    result.row_var = at::zeros(result.rows->row_shape(), options);
    result.column_var = at::zeros(result.rows->column_shape(), options);
  }
  result.parameter = std::move(parameter);
  return result;
}

/// A parameter in one update.
struct Move {
  Factored& of;
  at::Tensor gradient;                     ///< With its rows about it, of a matrix.
  at::Tensor row_squares, column_squares;  ///< Of a matrix.
  double size = 0;                         ///< The parameter's norm.
  at::Tensor update;                       ///< This rank's part.
};

/// Adafactor (Shazeer and Stern, 2018) as torch/optim/_adafactor.py has it: its operations in their
/// order, so that one rank's weights are bitwise Python's. Where ranks hold parts, sums of squares
/// over rows, columns and all elements are added up over them, in float64.
class Adafactor : public Optimizer {
 public:
  using Config = AdafactorConfig;

  explicit Adafactor(const Config& config) : config_(config) {}

  double base_lr() const override { return config_.lr; }
  void join(const Ranks& ranks) override { ranks_ = ranks; }

  void bind(std::vector<ParameterGroup> groups) override {
    bound_.clear();
    for (ParameterGroup& group : groups) {
      for (NamedParameter& parameter : group.parameters) {
        bound_.push_back(factored(std::move(parameter), group.weight_decay, ranks_));
      }
    }
  }

  void step(double lr) override {
    const c10::NoGradGuard no_grad;
    std::vector<Move> moves;
    int64_t elements = 0;
    for (Factored& each : bound_) {
      const at::Tensor& tensor = each.parameter.tensor;
      if (!tensor.grad().defined()) continue;
      const bool is_elsewhere =
          !moves.empty() && moves.back().of.parameter.tensor.device() != tensor.device();
      if (elements >= kElementsAtATime || is_elsewhere) {
        move(std::exchange(moves, {}), lr);
        elements = 0;
      }
      moves.push_back({.of = each});
      elements += each.elements;
    }
    move(std::move(moves), lr);
  }

  std::vector<ShardedTensorView> state() override {
    std::vector<ShardedTensorView> views;
    for (const Factored& each : bound_) {
      if (each.rows) {
        const std::string& name = each.parameter.name;
        views.push_back(whole_tensor(name + ".row_var", each.row_var));
        views.push_back(whole_tensor(name + ".col_var", each.column_var));
      } else {
        views.push_back(state_view(each.parameter, "variance", each.variance));
      }
      views.push_back(state_view(each.parameter, "step", each.step));
    }
    return views;
  }

 private:
  using Values = std::function<at::Tensor(const Move&)>;

  void move(std::vector<Move> moves, double lr) const {
    if (moves.empty()) return;
    SumsOverRanks sums;
    for (Move& each : moves) begin(each, sums);
    const auto sizes = norms(
        moves, [](const Move& each) { return each.of.parameter.tensor.detach(); }, sums);
    for (std::size_t i = 0; i < moves.size(); ++i) {
      moves[i].size = sizes[i];
      prepare(moves[i]);
    }
    const auto updates = norms(
        moves, [](const Move& each) { return each.update; }, sums);
    for (std::size_t i = 0; i < moves.size(); ++i) apply(moves[i], updates[i], lr);
  }

  // What a sum over ranks begins with here.
  static at::Tensor share(const Factored& of, at::Tensor values, SumsOverRanks& sums) {
    if (!of.is_split) return values;
    if (!of.counts) values.zero_();
    sums.add(values);
    return values;
  }

  void begin(Move& move, SumsOverRanks& sums) const {
    const at::Tensor& parameter = move.of.parameter.tensor;
    at::Tensor gradient = parameter.grad().to(parameter.scalar_type());
    move.gradient = config_.maximize ? -gradient : gradient;
    if (!move.of.rows) return;
    move.gradient = move.of.rows->around(move.gradient);
    move.row_squares = share(move.of, move.of.rows->row_squares(move.gradient), sums);
    move.column_squares = share(move.of, move.of.rows->column_squares(move.gradient), sums);
  }

  // The norms of whole tensors, brought to the host together; reduces what else is in `sums`.
  std::vector<double> norms(const std::vector<Move>& moves, const Values& values,
                            SumsOverRanks& sums) const {
    std::vector<at::Tensor> squares;
    for (const Move& each : moves) {
      squares.push_back(share(each.of, at::norm(values(each), 2).to(at::kDouble).square_(), sums));
    }
    sums.reduce(ranks_);
    const at::Tensor on_host = at::stack(squares).sqrt_().cpu();
    const auto* const begin = on_host.const_data_ptr<double>();
    return {begin, begin + on_host.numel()};
  }

  double least_root(const at::Tensor& parameter) const {
    if (config_.eps1) return *config_.eps1;
    switch (parameter.scalar_type()) {
      case at::kDouble:
        return std::numeric_limits<double>::epsilon();
      case at::kBFloat16:
        return 0x1p-7;
      case at::kHalf:
        return 0x1p-10;
      default:
        return std::numeric_limits<float>::epsilon();
    }
  }

  void prepare(Move& move) const {
    Factored& of = move.of;
    const double count = of.step.item().toDouble() + 1;
    of.step.fill_(count);
    const double share = std::pow(count, config_.beta2_decay);
    const double eps = least_root(of.parameter.tensor);
    at::Tensor estimate;
    if (!of.rows) {
      of.variance.lerp_(move.gradient * move.gradient, share);
      estimate = of.variance.clone();
    } else {
      const RowWindow& rows = *of.rows;
      const auto mean = [&](const at::Tensor& squares, int64_t number) {
        return squares.div(number).to(of.row_var.scalar_type());
      };
      of.row_var.lerp_(mean(move.row_squares, rows.columns()), share);
      of.column_var.lerp_(mean(move.column_squares, rows.rows()), share);
      const at::Tensor means = of.row_var.mean(-2, /*keepdim=*/true).clamp_(eps);
      estimate = rows.of_rows(of.row_var) * rows.of_columns(of.column_var);
      estimate.div_(rows.of_rows(means));
    }
    const at::Tensor update = estimate.clamp_(eps * eps).rsqrt_().mul_(move.gradient);
    move.update = of.rows ? of.rows->part_of(update) : update;
    move.gradient.reset();
  }

  void apply(const Move& move, double update_norm, double lr) const {
    const Factored& of = move.of;
    const at::Tensor& parameter = of.parameter.tensor;
    const double root = std::sqrt(static_cast<double>(of.elements));
    const double relative = std::min(lr, 1 / std::sqrt(of.step.item().toDouble()));
    const double alpha = std::max(config_.eps2, move.size / root) * relative;
    const double denominator = std::max(1.0, update_norm / (root * config_.d));
    if (of.weight_decay && config_.weight_decay != 0) {
      Unless({}).multiply({parameter}, 1 - lr * config_.weight_decay);
    }
    parameter.add_(move.update.view_as(parameter), -alpha / denominator);
  }

  Config config_;
  Ranks ranks_;
  std::vector<Factored> bound_;
};

REGISTER_OPTIMIZER("adafactor", Adafactor);

}  // namespace
}  // namespace phalanx
