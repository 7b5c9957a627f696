// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/mixins/guards.h"

namespace phalanx {

class TrainerBase;

/// What GuardsMixin does, whatever the composition.
class GuardsMixinBase {
 public:
  explicit GuardsMixinBase(const GuardsConfig& config);

 protected:
  void set_up(TrainerBase& trainer);
  void tell_of_skip(const TrainerBase& trainer, const StepResult& result) const;
  void tell_of_undo(const TrainerBase& trainer);

 private:
  std::optional<Guards> guards_;  ///< None: no step is judged.
};

/// Stops a run at a step whose loss or gradients are bad, leaves the step out, or goes back to the
/// last checkpoint.
template <class Derived>
class GuardsMixin : public Mixin<Derived, GuardsMixin>, private GuardsMixinBase {
 public:
  static constexpr std::string_view kSection = "guards";
  static constexpr std::string_view kMeaning = "what is done about steps that go wrong";
  using Config = GuardsConfig;
  using Hooks = HookList<Setup, StepEnd, StepUndone>;

  using GuardsMixinBase::GuardsMixinBase;

  void on_setup() { set_up(this->trainer()); }
  void on_step_end(const State&, const StepResult& result) {
    tell_of_skip(this->trainer(), result);
  }
  void on_step_undone(const State&) { tell_of_undo(this->trainer()); }
};

}  // namespace phalanx
