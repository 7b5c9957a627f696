// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

class Pipeline;
class TrainerBase;
template <class Derived>
class MixedPrecisionMixin;

/// The section `parallel` of a training by stages: each rank is one.
struct PipelineConfig {
  NumaBinding numa_binding = NumaBinding::automatic;
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout = std::chrono::minutes(10);

  static void describe(config::Schema<PipelineConfig>& s);
};

/// What PipelineMixin does, whatever the composition.
class PipelineMixinBase {
 public:
  explicit PipelineMixinBase(const PipelineConfig& /*config*/) {}

  static void complete_config(config::Node& tree);
  static void fill_plan(const PipelineConfig& config, RunPlan& plan);

 protected:
  void set_up(TrainerBase& trainer);
  void close();

 private:
  std::shared_ptr<Pipeline> engine_;  ///< None: one rank.
};

/// Checks that all ranks mean the same run, and divides the model's units over them.
template <class Derived>
class PipelineMixin : public Mixin<Derived, PipelineMixin>, private PipelineMixinBase {
 public:
  static constexpr std::string_view kSection = "parallel";
  static constexpr std::string_view kMeaning = "how the stages meet: each rank is one";
  using Config = PipelineConfig;
  using After = MixinList<MixedPrecisionMixin>;
  using Hooks = HookList<CompleteConfig, FillPlan, Setup, TrainingEnd>;

  using PipelineMixinBase::complete_config;
  using PipelineMixinBase::fill_plan;
  using PipelineMixinBase::PipelineMixinBase;

  void on_setup() { set_up(this->trainer()); }
  void on_training_end(const State& /*state*/) { close(); }
};

}  // namespace phalanx
