// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/config/tree/forward.h"

namespace phalanx::power_sgd {

/// What both hooks need to count their iterations.
struct CountOptions {
  int64_t start_powerSGD_iter = 1000;  // NOLINT(readability-identifier-naming)
  bool warm_start = true;
  int64_t random_seed = 0;
  int64_t compression_stats_logging_frequency = 10'000;
};

/// The fields of powerSGD_hook.py's PowerSGDState, by its names: of the hook for each gradient by
/// itself.
struct LayerOptions {
  int64_t matrix_approximation_rank = 1;
  int64_t start_powerSGD_iter = 1000;  // NOLINT(readability-identifier-naming)
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  double orthogonalization_epsilon = 0;
  int64_t random_seed = 0;
  int64_t compression_stats_logging_frequency = 10'000;
  bool batch_tensors_with_same_shape = false;

  static void describe(config::Schema<LayerOptions>& s);
};

/// Those that the hook for whole buckets uses.
struct BucketOptions {
  int64_t matrix_approximation_rank = 1;
  int64_t start_powerSGD_iter = 1000;  // NOLINT(readability-identifier-naming)
  bool use_error_feedback = true;
  bool warm_start = true;
  int64_t random_seed = 0;
  int64_t compression_stats_logging_frequency = 10'000;

  static void describe(config::Schema<BucketOptions>& s);
};

template <class Options>
CountOptions count_options(const Options& options) {
  return {.start_powerSGD_iter = options.start_powerSGD_iter,
          .warm_start = options.warm_start,
          .random_seed = options.random_seed,
          .compression_stats_logging_frequency = options.compression_stats_logging_frequency};
}

}  // namespace phalanx::power_sgd
