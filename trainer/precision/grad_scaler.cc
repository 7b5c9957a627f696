// SPDX-License-Identifier: Apache-2.0
#include "trainer/precision/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <map>
#include <tuple>

namespace phalanx {
namespace {

// The kernel takes tensors of one device and dtype.
using Kind = std::tuple<c10::DeviceType, c10::DeviceIndex, at::ScalarType>;

std::map<Kind, std::vector<at::Tensor>> by_kind(const std::vector<at::Tensor>& tensors) {
  std::map<Kind, std::vector<at::Tensor>> groups;
  for (const auto& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    const at::Device device = tensor.device();
    groups[{device.type(), device.index(), tensor.scalar_type()}].push_back(tensor);
  }
  return groups;
}

}  // namespace

GradScaler::GradScaler(const LossScaling& scaling)
    : scaling_(scaling), scale_(static_cast<float>(scaling.init_scale)) {}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  const bool is_low = at::isReducedFloatingType(loss.scalar_type());
  const at::Tensor single = is_low ? loss.to(at::kFloat) : loss;
  if (scale_there_.defined()) return single * scale_there_;
  return single * static_cast<double>(scale_);
}

bool GradScaler::unscale(const std::vector<at::Tensor>& gradients, const Ranks& ranks) {
  // The inverse in double precision first (torch/amp/grad_scaler.py, unscale_).
  const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale_));
  const at::Tensor found = at::zeros({1}, at::kFloat);
  for (const auto& [kind, tensors] : by_kind(gradients)) {
    const auto options = at::TensorOptions().dtype(at::kFloat).device(tensors.front().device());
    at::Tensor found_here = at::zeros({1}, options);
    at::_amp_foreach_non_finite_check_and_unscale_(tensors, found_here,
                                                   at::full({1}, inverse, options));
    found.add_(found_here.cpu());
  }
  ranks.all_reduce(found, Reduction::maximum);
  const bool finite = *found.const_data_ptr<float>() == 0;
  move_scale(finite);
  return finite;
}

at::Tensor GradScaler::unscale_there(const std::vector<at::Tensor>& gradients, at::Device device,
                                     const Ranks& ranks) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  if (!scale_there_.defined()) {
    scale_there_ = at::full({}, scale_, options);
    good_steps_there_ = at::full({}, good_steps_, options.dtype(at::kInt));
  }
  const at::Tensor inverse = scale_there_.to(at::kDouble).reciprocal().to(at::kFloat);
  at::Tensor found = at::zeros({}, options);
  for (const auto& [kind, tensors] : by_kind(gradients)) {
    at::_amp_foreach_non_finite_check_and_unscale_(tensors, found, inverse);
  }
  ranks.all_reduce(found, Reduction::maximum);
  at::_amp_update_scale_(scale_there_, good_steps_there_, found, scaling_.growth_factor,
                         scaling_.backoff_factor, scaling_.growth_interval);
  return found;
}

void GradScaler::move_scale(bool finite) {
  if (!finite) {
    scale_ = static_cast<float>(scale_ * scaling_.backoff_factor);
    good_steps_ = 0;
    return;
  }
  if (++good_steps_ < scaling_.growth_interval) return;
  const auto grown = static_cast<float>(scale_ * scaling_.growth_factor);
  if (grown < std::numeric_limits<float>::infinity()) scale_ = grown;
  good_steps_ = 0;
}

void GradScaler::take_over(double scale, int64_t good_steps) {
  scale_ = static_cast<float>(scale);
  good_steps_ = good_steps;
}

void GradScaler::restore(double scale, int64_t good_steps) {
  take_over(scale, good_steps);
  scale_there_.reset();
  good_steps_there_.reset();
}

}  // namespace phalanx
