// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

class ParameterServer;
class TrainerBase;
template <class Derived>
class MixedPrecisionMixin;

/// When servers move the weights.
enum class ServerUpdates { synchronous, asynchronous };

/// The section `parallel` of a training by parameter servers.
struct ParameterServerConfig {
  int64_t servers = 1;
  ServerUpdates updates = ServerUpdates::synchronous;
  bool sparse_embeddings = false;
  NumaBinding numa_binding = NumaBinding::automatic;
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout = std::chrono::minutes(10);

  static void describe(config::Schema<ParameterServerConfig>& s);
};

/// What ParameterServerMixin does, whatever the composition.
class ParameterServerMixinBase {
 public:
  explicit ParameterServerMixinBase(const ParameterServerConfig& config) : config_(config) {}

  static void complete_config(config::Node& tree);
  static void fill_plan(const ParameterServerConfig& config, RunPlan& plan);

 protected:
  void set_up(TrainerBase& trainer);
  void note_restored_weights();
  void close();

 private:
  ParameterServerConfig config_;
  std::shared_ptr<ParameterServer> engine_;  ///< None: one rank.
};

/// Checks that all ranks mean the same run and has some of them serve the parameters to all.
template <class Derived>
class ParameterServerMixin : public Mixin<Derived, ParameterServerMixin>,
                             private ParameterServerMixinBase {
 public:
  static constexpr std::string_view kSection = "parallel";
  static constexpr std::string_view kMeaning = "which ranks serve the model's parameters";
  using Config = ParameterServerConfig;
  using After = MixinList<MixedPrecisionMixin>;
  using Hooks = HookList<CompleteConfig, FillPlan, Setup, StepUndone, TrainingEnd>;

  using ParameterServerMixinBase::complete_config;
  using ParameterServerMixinBase::fill_plan;
  using ParameterServerMixinBase::ParameterServerMixinBase;

  void on_setup() { set_up(this->trainer()); }
  void on_step_undone(const State& /*state*/) { note_restored_weights(); }
  void on_training_end(const State& /*state*/) { close(); }
};

}  // namespace phalanx
