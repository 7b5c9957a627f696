// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/config/tree/forward.h"

namespace phalanx::power_sgd {

/// The fields of powerSGD_hook.py's PowerSGDState that both hooks use, by its names.
struct Options {
  int64_t matrix_approximation_rank = 1;
  int64_t start_powerSGD_iter = 1000;  // NOLINT(readability-identifier-naming)
  bool use_error_feedback = true;
  bool warm_start = true;
  int64_t random_seed = 0;
  int64_t compression_stats_logging_frequency = 10'000;
};

/// Those that the hook for each gradient by itself uses besides.
struct LayerOptions : Options {
  double min_compression_rate = 2;
  double orthogonalization_epsilon = 0;
  bool batch_tensors_with_same_shape = false;

  static void describe(config::Schema<LayerOptions>& s);
};

/// Those of the hook for whole buckets.
struct BucketOptions : Options {
  static void describe(config::Schema<BucketOptions>& s);
};

}  // namespace phalanx::power_sgd
