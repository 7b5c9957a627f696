// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/early_stopping_mixin.h"

#include "trainer/api/named_metrics.h"
#include "trainer/loop/trainer_base.h"

namespace phalanx {
namespace {

constexpr const char* kField = "early_stopping.metric";

}  // namespace

EarlyStoppingMixinBase::EarlyStoppingMixinBase(const EarlyStoppingConfig& config)
    : metric_(config.metric) {
  if (metric_) stopping_.emplace(config);
}

void EarlyStoppingMixinBase::set_up(TrainerBase& trainer) {
  if (stopping_ && trainer.purpose() == Purpose::training) {
    trainer.keep_state("early_stopping", *stopping_);
  }
}

void EarlyStoppingMixinBase::start(TrainerBase& trainer) {
  if (!stopping_) return;
  // What the rehearsal of a validation has given: not after hours of training.
  const std::vector<std::string>& given = trainer.validation_names();
  if (!given.empty()) require_metric(given, *metric_, kField);
  end_if_over(trainer);
}

void EarlyStoppingMixinBase::end_if_over(TrainerBase& trainer) const {
  const std::string reason = stopping_->reason();  // the same on all ranks, as their values are
  if (!reason.empty()) trainer.end_early(reason);
}

void EarlyStoppingMixinBase::take(TrainerBase& trainer, const NamedValues& values) {
  if (!stopping_ || trainer.purpose() != Purpose::training) return;
  stopping_->take(metric_in(values, *metric_, kField), trainer.state().step);
  end_if_over(trainer);
}

}  // namespace phalanx
