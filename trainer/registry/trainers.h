// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string_view>

#include "trainer/config/tree/forward.h"
#include "trainer/registry/registry.h"

namespace phalanx {

class AnyTrainer;
struct RunPlan;
struct TrainerSetup;

/// A registered composition.
struct TrainerEntry {
  const config::Declaration& (*declaration)() = nullptr;
  std::unique_ptr<AnyTrainer> (*make)(TrainerSetup&& setup) = nullptr;
  void (*fill_plan)(const config::Node& resolved, RunPlan& plan) = nullptr;
  void (*complete_config)(config::Node& tree) = nullptr;
};

/// The compositions by name; the config's `name` picks one.
class TrainerRegistry {
 public:
  static TrainerRegistry& instance();

  template <class Trainer>
  bool add(const char* name, const char* file, int line) {
    return add_entry({name, file, line}, {+[]() -> const config::Declaration& {
                                            static const auto declaration = Trainer::declaration();
                                            return declaration;
                                          },
                                          +[](TrainerSetup&& setup) -> std::unique_ptr<AnyTrainer> {
                                            return std::make_unique<Trainer>(std::move(setup));
                                          },
                                          &Trainer::fill_plan, &Trainer::complete_config});
  }

  const NameTable& table() const { return table_; }

  /// Throws UserError for an unknown name.
  const TrainerEntry& at(std::string_view name) const { return entries_[table_.index_of(name)]; }

 private:
  TrainerRegistry() : table_("trainer") {}
  bool add_entry(Registration registration, TrainerEntry entry);

  NameTable table_;
  std::deque<TrainerEntry> entries_;
};

}  // namespace phalanx

/// REGISTER_TRAINER("supervised", phalanx::Trainer<LoggingMixin, CheckpointMixin>): a composition
/// that a config can name. Variadic, so that the template's commas pass.
#define REGISTER_TRAINER(name, ...)                                                          \
  [[maybe_unused]] static const bool PHALANX_CONCATENATE(phalanx_registered_, __COUNTER__) = \
      ::phalanx::TrainerRegistry::instance().add<__VA_ARGS__>(name, __FILE__, __LINE__)
