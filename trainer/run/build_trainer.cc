// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/build_trainer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/api/lr_schedule.h"
#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/task.h"
#include "trainer/base/joined.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/plan/memory_needs.h"
#include "trainer/plan/sharding_check.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

const std::string& chosen(const config::Node& resolved, std::string_view section) {
  return resolved.find(section)->find("name")->text;
}

template <class Product>
std::shared_ptr<Product> make(const config::Node& resolved) {
  const auto& registry = Registry<Product>::instance();
  const std::string& section = registry.table().kind();
  return registry.at(chosen(resolved, section)).make(*resolved.find(section));
}

// Before anything is built: a model can take minutes and gigabytes.
void require_interface(const config::Node& resolved) {
  const auto& task = chosen(resolved, "task");
  const auto& model = chosen(resolved, "model");
  const std::string_view needed = Registry<AnyTask>::instance().at(task).required_interface;
  const auto& models = Registry<ModelBase>::instance();
  const auto offers = [&](const std::string& name) {
    const auto& offered = models.at(name).interfaces;
    return std::find(offered.begin(), offered.end(), needed) != offered.end();
  };
  if (offers(model)) return;
  std::vector<std::string> fitting = models.table().names();
  std::erase_if(fitting, [&](const std::string& name) { return !offers(name); });
  throw UserError("task '" + task + "' drives models with the interface " + std::string(needed) +
                  ", which model '" + model + "' does not have; models that do: " +
                  (fitting.empty() ? "none" : joined(fitting)));
}

}  // namespace

std::unique_ptr<AnyTrainer> build_trainer(const TrainerEntry& entry, const config::Node& resolved,
                                          const World& world, Purpose purpose) {
  require_interface(resolved);
  require_sharding(resolved, world.ranks());
  const auto training = config::read<TrainingConfig>(*resolved.find("training"));
  seed_everything(static_cast<uint64_t>(training.seed), world.device());
  TrainerSetup setup;
  setup.config = std::make_shared<const config::Node>(resolved);
  setup.ranks = world.ranks();
  setup.device = world.device();
  setup.components.task = make<AnyTask>(resolved);
  setup.deferred_init =
      DeferredInit::record([&] { setup.components.model = make<ModelBase>(resolved); });
  setup.components.optimizer = make<Optimizer>(resolved);
  if (purpose == Purpose::training) {
    require_memory(resolved, *setup.components.model, *setup.components.optimizer, world);
  }
  setup.components.lr_schedule = make<LrSchedule>(resolved);
  return entry.make(std::move(setup));
}

}  // namespace phalanx
