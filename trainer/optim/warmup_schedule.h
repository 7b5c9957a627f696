// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "trainer/api/lr_scheduler.h"
#include "trainer/optim/warmup.h"

namespace phalanx {

/// Base of a schedule that begins with a linear warm-up of `warmup_steps`, a field of its config;
/// where that has `decay_steps` and they are null, it needs the run's length.
template <class ConfigT>
class WarmupSchedule : public LrScheduler {
 public:
  using Config = ConfigT;

  explicit WarmupSchedule(Config config) : config_(std::move(config)) {}

  double factor(int64_t step, int64_t total_steps) const final {
    const int64_t warmup_steps = config_.warmup_steps;
    if (in_warmup(step, warmup_steps)) return warmup_factor(step, warmup_steps);
    return factor_after(step, total_steps);
  }

  bool needs_total_steps() const final {
    if constexpr (requires(const Config& config) { config.decay_steps.has_value(); }) {
      return !config_.decay_steps.has_value();
    } else {
      return false;
    }
  }

 protected:
  const Config& config() const { return config_; }

 private:
  /// The factor of a step after the warm-up.
  virtual double factor_after(int64_t step, int64_t total_steps) const = 0;

  Config config_;
};

}  // namespace phalanx
