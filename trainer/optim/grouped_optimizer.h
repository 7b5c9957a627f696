// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

/// An optimizer for each rule of a config and each scale of its learning rates, all of one class:
/// so a class knows nothing of rules.
class GroupedOptimizer final : public Optimizer {
 public:
  /// Makes the optimizer of a rule; none: of the parameters that no rule takes.
  using Make = std::function<std::shared_ptr<Optimizer>(std::optional<std::size_t> rule)>;

  GroupedOptimizer(Make make, std::size_t rules);

  double base_lr() const override { return rest_->base_lr(); }
  /// The least of any rule's.
  int64_t states_of(const NamedParameter& parameter) const override;
  void join(const Ranks& ranks) override;
  void bind(std::vector<ParameterGroup> groups) override;
  /// `lr`: of the parameters that no rule takes, which must not be 0 for the others to follow.
  void step(double lr) override;
  void step_unless(const at::Tensor& skip, double lr) override;
  void step_by(double factor, const at::Tensor& skip = {}) override;
  std::vector<ShardedTensorView> state() override;

 private:
  struct Part {
    std::optional<std::size_t> rule;
    double lr_scale = 1;
    std::shared_ptr<Optimizer> optimizer;
    std::vector<ParameterGroup> groups;  ///< Until it is bound.
  };

  Part& part_of(const ParameterGroup& group);
  double factor_of(double lr) const;

  Make make_;
  std::size_t rules_;
  std::shared_ptr<Optimizer> rest_;       ///< Says what the fields outside of rules are.
  std::function<void(Optimizer&)> join_;  ///< Before `bind`; none: one rank.
  std::vector<Part> parts_;
};

}  // namespace phalanx
