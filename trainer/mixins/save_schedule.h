// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "trainer/api/step_result.h"
#include "trainer/checkpoint/retention/planned_saves.h"
#include "trainer/config/tree/interval.h"
#include "trainer/mixins/checkpoint_config.h"

namespace phalanx {

class TrainerBase;

/// When checkpoints are due.
class SaveSchedule {
 public:
  explicit SaveSchedule(const CheckpointConfig& config);

  /// Whether one is due at the end of this step: by steps, by time on rank 0's clock, as the best
  /// are kept and this one was validated, or as somebody asked for it. The same on all ranks, which
  /// all call it.
  bool is_due(const TrainerBase& trainer, const StepResult& result, bool was_validated) const;

  /// The seconds begin again: a save has ended.
  void restart_clock() { since_ = Clock::now(); }

  /// Those that are still to come, as far as it is known ahead.
  PlannedSaves saves_to_come(const TrainerBase& trainer) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<int64_t> every_n_steps_;
  std::optional<config::Interval> every_n_seconds_;
  bool after_validation_;
  Clock::time_point since_ = Clock::now();
};

}  // namespace phalanx
