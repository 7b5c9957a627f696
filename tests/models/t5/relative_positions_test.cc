// SPDX-License-Identifier: Apache-2.0
#include "models/t5/relative_positions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace phalanx::t5 {
namespace {

// The bucket of a distance >= 0, computed in integers: in the upper half it is the last one whose
// lower end, exact * (max / exact)^(i / wide), is not above the distance.
int64_t expected_bucket(int64_t distance, int64_t count, int64_t max_distance) {
  const int64_t exact = count / 2;
  if (distance < exact) return distance;
  const int64_t wide = count - exact;
  int64_t bucket = exact;
  for (int64_t i = 1; i < wide; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(wide);
    const double ratio = static_cast<double>(max_distance) / static_cast<double>(exact);
    const double begin = static_cast<double>(exact) * std::pow(ratio, share);
    if (static_cast<double>(distance) >= begin - 1e-9) bucket = exact + i;
  }
  return bucket;
}

int64_t expected_bucket(int64_t seeing, int64_t seen, const Buckets& buckets) {
  if (buckets.is_causal) {
    return expected_bucket(std::max<int64_t>(seeing - seen, 0), buckets.count,
                           buckets.max_distance);
  }
  const int64_t half = buckets.count / 2;
  return (seen > seeing ? half : 0) +
         expected_bucket(std::abs(seeing - seen), half, buckets.max_distance);
}

TEST(RelativePositions, BucketsGrowWithTheDistance) {
  constexpr int64_t kLength = 200;
  for (const bool is_causal : {false, true}) {
    for (const Buckets& buckets :
         {Buckets{.is_causal = is_causal},
          Buckets{.count = 10, .max_distance = 37, .is_causal = is_causal},
          Buckets{.count = 4, .max_distance = 3, .is_causal = is_causal}}) {
      const at::Tensor found = relative_buckets(kLength, kLength, buckets, at::kCPU).contiguous();
      ASSERT_EQ(found.sizes(), at::IntArrayRef({kLength, kLength}));
      const auto* bucket = found.const_data_ptr<int64_t>();
      for (int64_t i = 0; i < kLength; ++i) {
        for (int64_t j = 0; j < kLength; ++j) {
          ASSERT_EQ(*bucket++, expected_bucket(i, j, buckets))
              << i << " sees " << j << " of " << buckets.count << " causal " << is_causal;
        }
      }
    }
  }
}

}  // namespace
}  // namespace phalanx::t5
