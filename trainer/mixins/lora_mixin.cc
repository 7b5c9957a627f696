// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/lora_mixin.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/api/adapters.h"
#include "trainer/api/parameters.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {

void LoraMixinBase::fill_plan(const LoraConfig& config, RunPlan& plan) {
  if (!config.is_used()) return;
  plan.adapt_model = [config](ModelBase& model) { config.adapt(model); };
}

void LoraMixinBase::describe_adapters(const TrainerBase& trainer,
                                      std::vector<ScreenLine>& lines) const {
  if (!config_.is_used()) return;
  const auto modules = adaptable_modules(trainer.model());
  const auto adapted = std::count_if(modules.begin(), modules.end(),
                                     [](const auto& each) { return each.module->has_adapter(); });
  const int64_t trained = count_trained_parameters(trainer.model());
  const int64_t all = count_parameters(trainer.model());
  lines.push_back(
      {"lora", fmt::format("r {}, lora_alpha {:g}; {} of {} linear layers; trains {} of {} "
                           "parameters ({:.2f} %)",
                           config_.r, config_.lora_alpha, adapted, modules.size(), trained, all,
                           100.0 * static_cast<double>(trained) / static_cast<double>(all))});
}

}  // namespace phalanx
