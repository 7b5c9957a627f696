// SPDX-License-Identifier: Apache-2.0
#include "models/layers/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include <numbers>

namespace phalanx {
namespace {

// The same operators in the same order as transformers' _compute_llama3_parameters: a rounding
// error of a frequency grows with the position.
at::Tensor scaled(const at::Tensor& frequencies, const RotaryScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const double low = scaling.low_freq_factor;
  const double high = scaling.high_freq_factor;
  const at::Tensor wavelengths = frequencies.reciprocal() * (2 * std::numbers::pi);
  const at::Tensor slowed =
      at::where(wavelengths.gt(original / low), frequencies / scaling.factor, frequencies);
  const at::Tensor smooth = (wavelengths.reciprocal() * original - low) / (high - low);
  const at::Tensor mixed = (1 - smooth) * slowed / scaling.factor + smooth * slowed;
  const at::Tensor is_between = wavelengths.ge(original / high) & wavelengths.le(original / low);
  return at::where(is_between, mixed, slowed);
}

}  // namespace

RotaryPositions::RotaryPositions(int64_t width, double base, std::optional<RotaryScaling> scaling)
    : width_(width), base_(base), scaling_(scaling) {}

Rotation RotaryPositions::rotation(const at::Tensor& positions, at::ScalarType dtype) const {
  const auto exact = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = positions.options().dtype(exact);
  const at::Tensor exponents = at::arange(0, width_, 2, options) / width_;
  at::Tensor frequencies = at::pow(base_, exponents).reciprocal();  // Radians per position.
  if (scaling_) frequencies = scaled(frequencies, *scaling_);
  at::Tensor angles = positions.to(exact).unsqueeze(-1) * frequencies;
  if (angles.dim() == 2) angles = angles.unsqueeze(0);
  angles = angles.unsqueeze(1);  // The same for all heads.
  return {.cosine = angles.cos().to(dtype), .sine = angles.sin().to(dtype)};
}

at::Tensor rotate(const at::Tensor& heads, const Rotation& rotation) {
  const auto halves = heads.chunk(2, -1);
  const at::Tensor first = halves[0] * rotation.cosine - halves[1] * rotation.sine;
  const at::Tensor second = halves[1] * rotation.cosine + halves[0] * rotation.sine;
  return at::cat({first, second}, -1);
}

}  // namespace phalanx
