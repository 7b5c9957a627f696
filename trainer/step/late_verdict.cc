// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/late_verdict.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/step/finite_check.h"

namespace phalanx {

// All that the host reads, in one dimension and thus one copy: the loss's parts, the norm, and with
// a loss scale the overflow, the scale and its good steps.
at::Tensor LateVerdict::values_of(const Step& step) const {
  const at::Device device =
      (step.overflow.defined() ? step.overflow : step.norms.front().total).device();
  std::vector<at::Tensor> values;
  const auto add = [&](const at::Tensor& value) {
    values.push_back(value.detach().to(device, at::kDouble));
  };
  for (const auto& [name, value] : step.loss_parts) add(value);
  for (const GradientNorm& norm : step.norms) add(norm.total);
  if (step.overflow.defined()) {
    add(step.overflow);
    add(step.scale);
    add(step.good_steps);
  }
  return at::stack(values);
}

// 1 where the step ends the run, given what the host will read of it.
at::Tensor LateVerdict::ends(const Step& step, const at::Tensor& values) const {
  const auto judged = static_cast<int64_t>(step.loss_parts.size() + step.norms.size());
  const at::Tensor is_bad = at::isfinite(values.narrow(0, 0, judged)).all().logical_not();
  if (!step.overflow.defined()) return is_bad.to(at::kFloat);
  // An overflow explains a norm that is not finite, and the scale has moved for it already.
  return at::where(step.overflow.to(at::kBool), step.scale < min_scale_, is_bad).to(at::kFloat);
}

at::Tensor LateVerdict::judge(Step step) {
  const at::Tensor values = values_of(step);
  at::Tensor skip = step.overflow;
  if (stops_) {
    const at::Tensor ends_now = ends(step, values);
    ended_ = ended_.defined() ? at::maximum(ended_, ends_now) : ends_now;
    skip = skip.defined() ? at::maximum(skip, ended_) : ended_;
  }
  pending_.emplace(Pending{.step = std::move(step), .values = LateValues(values)});
  return skip;
}

std::optional<LateVerdict::Judged> LateVerdict::settle() {
  if (!pending_) return std::nullopt;
  Pending pending = *std::exchange(pending_, std::nullopt);
  const std::vector<double> values = pending.values.read();
  auto value = values.begin();
  Judged judged{.number = pending.step.number,
                .norms = std::move(pending.step.norms),
                .samples = std::move(pending.step.samples)};
  for (const auto& [name, tensor] : pending.step.loss_parts) {
    const std::string problem = nonfinite_value(name, *value++);
    if (judged.loss_problem.empty()) judged.loss_problem = problem;
  }
  for (size_t i = 0; i < judged.norms.size(); ++i) {
    judged.is_norm_finite = std::isfinite(*value++) && judged.is_norm_finite;
  }
  if (pending.step.overflow.defined()) {
    judged.overflowed = *value++ != 0;
    judged.scale = *value++;
    judged.good_steps = static_cast<int64_t>(*value);
  }
  return judged;
}

}  // namespace phalanx
