// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/mixins/early_stopping.h"

namespace phalanx {

class TrainerBase;
template <class Derived>
class ValidationMixin;

/// What EarlyStoppingMixin does, whatever the composition.
class EarlyStoppingMixinBase {
 public:
  explicit EarlyStoppingMixinBase(const EarlyStoppingConfig& config);

 protected:
  void set_up(TrainerBase& trainer);
  void start(TrainerBase& trainer);
  void take(TrainerBase& trainer, const NamedValues& values);

 private:
  void end_if_over(TrainerBase& trainer) const;

  std::optional<std::string> metric_;
  std::optional<EarlyStopping> stopping_;  ///< None: nothing ends the run early.
};

/// Ends a run, as finished, when a value of its validations gets no better.
template <class Derived>
class EarlyStoppingMixin : public Mixin<Derived, EarlyStoppingMixin>,
                           private EarlyStoppingMixinBase {
 public:
  static constexpr std::string_view kSection = "early_stopping";
  static constexpr std::string_view kMeaning = "an end when validations get no better";
  using Config = EarlyStoppingConfig;
  using After = MixinList<ValidationMixin>;  // a run that is over may have a validation to make
  using Hooks = HookList<Setup, TrainingStart, ValidationEnd>;

  using EarlyStoppingMixinBase::EarlyStoppingMixinBase;

  void on_setup() { set_up(this->trainer()); }
  void on_training_start(const State&) { start(this->trainer()); }
  void on_validation_end(const State&, const NamedValues& values) { take(this->trainer(), values); }
};

}  // namespace phalanx
