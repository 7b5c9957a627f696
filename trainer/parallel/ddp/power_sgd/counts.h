// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>

#include "trainer/parallel/ddp/power_sgd/options.h"

namespace phalanx::power_sgd {

/// What the iterations of PowerSGD count, the same on all ranks: how many there were, the seeds
/// that were drawn for Qs, and what was compressed (the fields of powerSGD_hook.py's
/// PowerSGDState).
class Counts {
 public:
  explicit Counts(const CountOptions& options);

  /// Whether this iteration's gradients are compressed; before, they are reduced as they are.
  bool compresses() const { return iteration_ >= options_.start_powerSGD_iter; }
  /// Whether Qs of the iteration before can be used.
  bool is_warm() const { return options_.warm_start && is_warm_; }

  /// The seed of the Qs of one bucket, a new one for each, as Python draws them: NumPy's
  /// RandomState(random_seed).randint(1_000_000_000).
  int64_t next_seed();
  /// A generator with that seed.
  at::Generator next_generator();
  /// Elements of a gradient, or of a bucket, before and after its compression.
  void count(int64_t before, int64_t after);
  /// All buckets of an iteration that does not compress have come.
  void end_iteration() { ++iteration_; }
  /// The same of one that does; `tell` gets the statistics where they are due.
  void end_compressed(const std::function<void(const std::string&)>& tell);

  std::string json() const;
  /// Throws UserError for what is no such text.
  void restore(std::string_view json);

 private:
  CountOptions options_;
  std::mt19937 random_;  ///< What NumPy's RandomState draws from, seeded alike.
  int64_t draws_ = 0;
  int64_t iteration_ = 0;
  bool is_warm_ = false;
  int64_t before_ = 0;
  int64_t after_ = 0;
  int64_t last_report_ = -1;  ///< The iteration; -1: there was none.
};

}  // namespace phalanx::power_sgd
