// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/guards_mixin.h"

#include <fmt/format.h>

#include <string>

#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"

namespace phalanx {

GuardsMixinBase::GuardsMixinBase(const GuardsConfig& config) {
  if (config.is_on()) guards_.emplace(config);
}

void GuardsMixinBase::set_up(TrainerBase& trainer) {
  if (!guards_ || trainer.purpose() != Purpose::training) return;
  trainer.keep_state("guards", *guards_);
  trainer.guard_steps(*guards_);
}

void GuardsMixinBase::tell_of_skip(const TrainerBase& trainer, const StepResult& result) const {
  if (result.guarded_by.empty() || !trainer.ranks().is_first()) return;
  Console::standard().line(
      fmt::format("warning: step {} {}: {}", trainer.state().step,
                  result.is_skipped ? "is skipped, nothing has moved" : "is skipped in part",
                  result.guarded_by));
}

void GuardsMixinBase::tell_of_undo(const TrainerBase& trainer) {
  if (!guards_) return;
  const std::string reason = guards_->went_back();
  if (!trainer.ranks().is_first()) return;
  Console::standard().line(
      fmt::format("warning: the run has gone back to the checkpoint of step {}, and goes on behind "
                  "these samples, without those since that step: {}",
                  trainer.state().step, reason));
}

}  // namespace phalanx
