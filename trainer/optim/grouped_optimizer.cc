// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/grouped_optimizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/ranks/ranks.h"

namespace phalanx {

GroupedOptimizer::GroupedOptimizer(Make make, std::size_t rules)
    : make_(std::move(make)), rules_(rules), rest_(make_(std::nullopt)) {}

int64_t GroupedOptimizer::states_of(const NamedParameter& parameter) const {
  int64_t least = rest_->states_of(parameter);
  for (std::size_t i = 0; i < rules_; ++i) {
    least = std::min(least, make_(i)->states_of(parameter));
  }
  return least;
}

void GroupedOptimizer::join(const Ranks& ranks) {
  join_ = [ranks](Optimizer& optimizer) { optimizer.join(ranks); };
}

GroupedOptimizer::Part& GroupedOptimizer::part_of(const ParameterGroup& group) {
  const auto known = std::ranges::find_if(parts_, [&](const Part& part) {
    return part.rule == group.rule && part.lr_scale == group.lr_scale;
  });
  if (known != parts_.end()) return *known;
  parts_.push_back({.rule = group.rule,
                    .lr_scale = group.lr_scale,
                    .optimizer = make_(group.rule),
                    .groups = {}});
  return parts_.back();
}

void GroupedOptimizer::bind(std::vector<ParameterGroup> groups) {
  parts_.clear();
  for (ParameterGroup& group : groups) part_of(group).groups.push_back(std::move(group));
  for (Part& part : parts_) {
    if (join_) join_(*part.optimizer);
    part.optimizer->bind(std::exchange(part.groups, {}));
  }
}

double GroupedOptimizer::factor_of(double lr) const { return base_lr() == 0 ? 0 : lr / base_lr(); }

void GroupedOptimizer::step(double lr) { step_by(factor_of(lr)); }

void GroupedOptimizer::step_unless(const at::Tensor& skip, double lr) {
  step_by(factor_of(lr), skip);
}

void GroupedOptimizer::step_by(double factor, const at::Tensor& skip) {
  for (const Part& part : parts_) part.optimizer->step_by(part.lr_scale * factor, skip);
}

std::vector<ShardedTensorView> GroupedOptimizer::state() {
  std::vector<ShardedTensorView> views;
  for (const Part& part : parts_) {
    std::ranges::move(part.optimizer->state(), std::back_inserter(views));
  }
  return views;
}

}  // namespace phalanx
