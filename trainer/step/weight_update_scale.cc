// SPDX-License-Identifier: Apache-2.0
// The loss scale of float16 in an update: takes it out of the gradients, and counts overflows.

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/step/finite_check.h"
#include "trainer/step/weight_update.h"

namespace phalanx {
namespace {

std::vector<at::Tensor> gradients_of_all(std::span<const OptimizerPart* const> parts) {
  std::vector<at::Tensor> all;
  for (const OptimizerPart* part : parts) {
    for (at::Tensor& gradient : gradients_of(part->parameters)) all.push_back(std::move(gradient));
  }
  return all;
}

}  // namespace

bool WeightUpdate::unscale(const OngoingStep& step, const Parts& parts) {
  auto& scaler = context_.parts.scaler();
  if (!scaler) return true;
  const double scale = scaler->current_scale();
  const bool finite = scaler->unscale(gradients_of_all(parts), context_.parts.ranks());
  const double now = scaler->current_scale();
  if (now != scale) {
    for (const at::Tensor& gradient : gradients_that_stay(parts)) gradient.mul_(now / scale);
  }
  context_.state.loss_scale = now;
  context_.state.good_steps = scaler->good_steps();
  if (finite) return true;
  count_update(context_.state.step, /*overflowed=*/true);
  refuse_small_scale(scale, [&] { return search_.origin_of(step.micro_batches); });
  return false;
}

at::Tensor WeightUpdate::unscale_there(const Parts& parts) {
  GradScaler& scaler = *context_.parts.scaler();
  const std::vector<at::Tensor> staying = gradients_that_stay(parts);
  // The scale of the first update is still the host's.
  at::Tensor before;
  if (!staying.empty() && scaler.scale_there().defined()) before = scaler.scale_there().clone();
  const double before_here = scaler.current_scale();
  at::Tensor overflow = scaler.unscale_there(gradients_of_all(parts), context_.parts.device(),
                                             context_.parts.ranks());
  if (staying.empty()) return overflow;
  const at::Tensor ratio =
      before.defined() ? scaler.scale_there() / before : scaler.scale_there() / before_here;
  for (const at::Tensor& gradient : staying) gradient.mul_(ratio);
  return overflow;
}

void WeightUpdate::count_update(int64_t step, bool overflowed) {
  if (scaled_.step != step) scaled_ = {.step = step};
  const bool was_counted = scaled_.moved_nothing();
  (overflowed ? scaled_.has_overflowed : scaled_.has_moved) = true;
  const bool counts = scaled_.moved_nothing();
  context_.state.overflowed_steps +=
      static_cast<int64_t>(counts) - static_cast<int64_t>(was_counted);
}

void WeightUpdate::refuse_small_scale(double scale,
                                      const std::function<NonfiniteOrigin()>& origin) const {
  if (!rules_.stop_on_nonfinite_loss || scale >= StepParts::kMinLossScale) return;
  refuse_overflow(scale, origin(), context_.parts.ranks());
}

// The scale has moved under them.
std::vector<at::Tensor> WeightUpdate::gradients_that_stay(const Parts& parts) const {
  std::vector<at::Tensor> staying;
  for (const OptimizerPart& part : context_.parts.optimizers()) {
    if (std::ranges::find(parts, &part) != parts.end()) continue;
    for (at::Tensor& gradient : gradients_of(part.parameters)) {
      staying.push_back(std::move(gradient));
    }
  }
  return staying;
}

}  // namespace phalanx
