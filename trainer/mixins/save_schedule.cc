// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/save_schedule.h"

#include <algorithm>
#include <optional>

#include "trainer/loop/trainer_base.h"

namespace phalanx {

SaveSchedule::SaveSchedule(const CheckpointConfig& config)
    : every_n_steps_(config.save_every_n_steps),
      every_n_seconds_(config.save_every_n_seconds),
      after_validation_(config.keep_best.has_value()) {}

bool SaveSchedule::is_due(const TrainerBase& trainer, const StepResult& result,
                          bool was_validated) const {
  if (result.save_requested || (after_validation_ && was_validated)) return true;
  if (every_n_steps_ && trainer.state().step % *every_n_steps_ == 0) return true;
  if (!every_n_seconds_) return false;
  using Seconds = std::chrono::duration<double>;
  const Seconds since = Clock::now() - since_;
  return Seconds(trainer.of_first_rank(since.count())) >= every_n_seconds_->length;
}

PlannedSaves SaveSchedule::saves_to_come(const TrainerBase& trainer) const {
  const int64_t step = trainer.state().step;
  if (trainer.finished()) return {.after = step, .are_all = true};
  const std::optional<int64_t> total = trainer.total_steps();
  if (!total || trainer.training().max_seconds) return {.after = step};  // It may end earlier.
  return {.after = step,
          .last = *total,
          .every = every_n_steps_.value_or(std::max<int64_t>(*total, 1)),
          .are_all = !every_n_seconds_ && !after_validation_};
}

}  // namespace phalanx
