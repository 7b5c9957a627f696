// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/forward.h"
#include "trainer/loop/training_config.h"

namespace phalanx {

class TrainerBase;

/// Where a config says what an optimizer's learning rate is.
struct RateFields {
  std::string optimizer = "optimizer";    ///< Or "optimizers.critic".
  std::string schedule = "lr_scheduler";  ///< Or the optimizer's own.
  std::string unit = "step";              ///< What the schedule counts: steps or epochs.
};

/// A warm-up (`warmup_steps`, in a chain that of its first schedule) that a run of so many steps
/// (of `fields.unit`) is too short for, in one line with the field to change; empty: it is long
/// enough. `resolved` is the run's config, `base_lr` the learning rate at factor 1, of the
/// optimizer at `fields`.
std::string long_warmup(const config::Node& resolved, double base_lr, int64_t total_steps,
                        const RateFields& fields = {});

/// The same of a trainer's run: a line for each of its optimizers that has one.
std::vector<std::string> long_warmups(const TrainerBase& trainer);

/// How the length of a run has changed that goes on behind `step`; all in what its schedules count.
struct ChangedLength {
  int64_t earlier_steps = 0;
  int64_t total_steps = 0;
  int64_t step = 0;
};

/// What that makes of the learning rate of the optimizer at `fields`, in one line with both rates
/// and the field that keeps the schedule; empty where the next step has the same one.
std::string moved_horizon(const config::Node& resolved, double base_lr, const ChangedLength& length,
                          const RateFields& fields = {});

/// The same of a trainer's run, whose config has been `earlier` until now: a line for each of its
/// optimizers whose rate changes; none of one whose schedule or learning rate itself is another
/// one.
std::vector<std::string> moved_horizons(const TrainerBase& trainer, const config::Node& earlier);

/// The same of a run whose resolved config is `earlier`, and then `now`, where no data is
/// needed to tell: both have their length by training.max_steps alone, and schedules count steps.
/// `step`: where the run is; nothing: at its end. Empty also where the schedule or the learning
/// rate itself is another one.
std::vector<std::string> moved_horizons(const config::Node& earlier, const config::Node& now,
                                        std::optional<int64_t> step);

/// The section `training` of a config with the limits in steps, epochs and samples of another one,
/// which an earlier version may have written.
TrainingConfig with_limits_of(const config::Node& resolved, const config::Node& earlier);

}  // namespace phalanx
