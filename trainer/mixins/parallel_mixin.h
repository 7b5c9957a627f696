// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/api/screen_line.h"
#include "trainer/config/tree/forward.h"
#include "trainer/parallel/parallel_config.h"

namespace phalanx {

class CommHook;
class GroupStates;
class TrainerBase;
template <class Derived>
class MixedPrecisionMixin;

/// What ParallelMixin does, whatever the composition.
class ParallelMixinBase {
 public:
  explicit ParallelMixinBase(ParallelConfig config);
  ~ParallelMixinBase();

  static void complete_config(config::Node& tree);
  static void fill_plan(const ParallelConfig& config, RunPlan& plan);

 protected:
  void set_up(TrainerBase& trainer);
  void end_step();
  void advise(const TrainerBase& trainer, std::vector<std::string>& advice) const;
  void describe(const TrainerBase& trainer, std::vector<ScreenLine>& lines) const;

 private:
  std::shared_ptr<CommHook> make_hook(const TrainerBase& trainer) const;

  ParallelConfig config_;
  std::shared_ptr<CommHook> hook_;  ///< Of DDP on several ranks, where the config names one.
  std::unique_ptr<GroupStates> group_states_;  ///< Where it has groups of ranks differ.
};

/// Checks that all ranks mean the same run and wraps the task model for them: in FSDP or DDP, or as
/// it is in a world of one (ml's ParallelMixin).
template <class Derived>
class ParallelMixin : public Mixin<Derived, ParallelMixin>, private ParallelMixinBase {
 public:
  static constexpr std::string_view kSection = "parallel";
  static constexpr std::string_view kMeaning = "how many ranks train one model";
  using Config = ParallelConfig;
  using After = MixinList<MixedPrecisionMixin>;
  using Hooks = HookList<CompleteConfig, FillPlan, Setup, StepEnd, OutOfMemory, StartScreen>;

  using ParallelMixinBase::complete_config;
  using ParallelMixinBase::fill_plan;
  using ParallelMixinBase::ParallelMixinBase;

  void on_setup() { set_up(this->trainer()); }
  void on_step_end(const State&, const StepResult&) { end_step(); }
  void on_out_of_memory(std::vector<std::string>& advice) { advise(this->trainer(), advice); }
  void on_start_screen(std::vector<ScreenLine>& lines) { describe(this->trainer(), lines); }
};

}  // namespace phalanx
