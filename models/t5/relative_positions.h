// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx::t5 {

/// Buckets of relative positions (Raffel et al. 2020, section 2.1): the first half one distance
/// each, the rest logarithmic up to `max_distance`; longer distances share the last.
struct Buckets {
  int64_t count = 32;
  int64_t max_distance = 128;
  bool is_causal = false;  ///< Only earlier keys; otherwise half of the buckets are for later keys.
};

/// The bucket of each pair of places, int64 [queries, keys]: the queries are the last places of a
/// sequence of `keys`, and row i holds those that query i sees. Computed in float32 where they are
/// logarithms, as in transformers (T5Attention._relative_position_bucket), so that no distance
/// falls into another bucket.
at::Tensor relative_buckets(int64_t queries, int64_t keys, const Buckets& buckets,
                            at::Device device);

}  // namespace phalanx::t5
