// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tests/trainer/loop/spy.h"
#include "trainer/mixins/logging_mixin.h"

namespace phalanx::tiny {

/// How often GroupNorms has measured in this process.
inline int norms_measured = 0;

/// Logs the gradient norm of each parameter of the tiny model, as a mixin of a user's own would do
/// it for groups of them: "grad_norm/weight", "grad_norm/bias".
template <class Derived>
class GroupNorms : public Mixin<Derived, GroupNorms> {
 public:
  static constexpr std::string_view kSection = "group_norms";
  static constexpr std::string_view kMeaning = "gradient norms of groups of parameters";
  using Config = NoFields;
  using Requires = MixinList<LoggingMixin>;
  using Hooks = HookList<AfterBackward>;

  explicit GroupNorms(Config) {}

  void on_after_backward(const State&) {
    auto& trainer = this->trainer();
    if (!trainer.may_log_step()) return;
    ++norms_measured;
    for (const OptimizerPart& part : trainer.optimizers()) {
      for (const NamedParameter& parameter : part.parameters) {
        trainer.log_value(*this, "grad_norm/" + parameter.name,
                          trainer.task_model().measure_gradients({parameter}).total);
      }
    }
  }
};

}  // namespace phalanx::tiny
