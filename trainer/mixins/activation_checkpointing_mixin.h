// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {

/// Trades one more forward pass of chosen units for the memory of what they save for the backward.
template <class Derived>
class ActivationCheckpointingMixin : public Mixin<Derived, ActivationCheckpointingMixin> {
 public:
  static constexpr std::string_view kSection = "activation_checkpointing";
  static constexpr std::string_view kMeaning =
      "less memory for activations, which are computed again";
  using Config = ActivationCheckpointing;
  using Hooks = HookList<FillPlan, Setup, OutOfMemory>;

  explicit ActivationCheckpointingMixin(Config config) : config_(std::move(config)) {}

  static void fill_plan(const Config& config, RunPlan& plan) {
    plan.recomputes_activations = config.policy != CheckpointedUnits::none;
  }
  void on_setup() { checkpoint_activations(this->trainer().model().module(), config_); }
  void on_out_of_memory(std::vector<std::string>& advice) const {
    if (config_.policy == CheckpointedUnits::none) {
      advice.emplace_back("activation_checkpointing.policy: unit (activations)");
    }
  }

 private:
  Config config_;
};

}  // namespace phalanx
