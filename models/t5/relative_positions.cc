// SPDX-License-Identifier: Apache-2.0
#include "models/t5/relative_positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace phalanx::t5 {
namespace {

// Bucket of each distance >= 0.
at::Tensor bucket_of(const at::Tensor& distance, int64_t count, int64_t max_distance) {
  const int64_t exact = count / 2;
  const double ratio = static_cast<double>(max_distance) / static_cast<double>(exact);
  // clamp_min: 0 has no logarithm. Distances below `exact` take the other branch.
  const at::Tensor logarithm = (distance.clamp_min(1).to(at::kFloat) / exact).log();
  const at::Tensor steps = (logarithm / std::log(ratio) * (count - exact)).to(at::kLong);
  return at::where(distance < exact, distance, (steps + exact).clamp_max(count - 1));
}

}  // namespace

at::Tensor relative_buckets(int64_t queries, int64_t keys, const Buckets& buckets,
                            at::Device device) {
  const at::Tensor places = at::arange(keys, at::TensorOptions(at::kLong).device(device));
  const at::Tensor of_queries = places.narrow(0, keys - queries, queries);
  const at::Tensor relative = places.unsqueeze(0) - of_queries.unsqueeze(1);
  if (buckets.is_causal) {
    return bucket_of((-relative).clamp_min(0), buckets.count, buckets.max_distance);
  }
  const int64_t half = buckets.count / 2;
  const at::Tensor later = relative.gt(0).to(at::kLong) * half;
  return later + bucket_of(relative.abs(), half, buckets.max_distance);
}

}  // namespace phalanx::t5
