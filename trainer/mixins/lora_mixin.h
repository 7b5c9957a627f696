// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/mixins/lora_config.h"

namespace phalanx {

class TrainerBase;

/// What LoraMixin does, whatever the composition.
class LoraMixinBase {
 public:
  explicit LoraMixinBase(LoraConfig config) : config_(std::move(config)) {}

  static void fill_plan(const LoraConfig& config, RunPlan& plan);

 protected:
  void describe_adapters(const TrainerBase& trainer, std::vector<ScreenLine>& lines) const;

 private:
  LoraConfig config_;
};

/// Trains low-rank adapters beside chosen linear layers of a model that stays as it was loaded
/// (LoRA, Hu et al. 2021): gradients, optimizer state and checkpoints are those of the adapters.
template <class Derived>
class LoraMixin : public Mixin<Derived, LoraMixin>, private LoraMixinBase {
 public:
  static constexpr std::string_view kSection = "lora";
  static constexpr std::string_view kMeaning = "small adapters trained in place of the model";
  using Config = LoraConfig;
  using Hooks = HookList<FillPlan, StartScreen>;

  using LoraMixinBase::fill_plan;
  using LoraMixinBase::LoraMixinBase;

  void on_start_screen(std::vector<ScreenLine>& lines) {
    describe_adapters(this->trainer(), lines);
  }
};

}  // namespace phalanx
