// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/save_schedule.h"

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

std::optional<int64_t> SaveSchedule::saves_left(const TrainerBase& trainer) const {
  if (trainer.finished()) return 0;
  if (every_n_seconds_ || after_validation_) return std::nullopt;
  if (!every_n_steps_) return 1;
  const std::optional<int64_t> total = trainer.total_steps();
  if (!total) return std::nullopt;
  // The last step is saved in any case, and once.
  return *total / *every_n_steps_ - trainer.state().step / *every_n_steps_ +
         (*total % *every_n_steps_ == 0 ? 0 : 1);
}

}  // namespace phalanx
