// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

class TrainerBase;
class WeightAverages;
template <class Derived>
class LoraMixin;
template <class Derived>
class ParallelMixin;

/// Which average of the weights is kept.
enum class Averages { none, ema, swa };

/// The section `averages`.
struct AveragesConfig {
  Averages method = Averages::none;
  double decay = 0.999;
  int64_t start = 0;
  std::optional<int64_t> every_n_steps;
  std::optional<int64_t> every_n_epochs;
  bool buffers = false;
  bool validate = false;

  static void describe(config::Schema<AveragesConfig>& s);

  /// Whether the weights of this step are taken.
  bool due(const State& state, const StepResult& result) const;

  /// A run of so many steps that takes no weights, in one line with the fields to change; empty: it
  /// takes some.
  std::string never_due(int64_t total_steps, int64_t steps_per_epoch) const;
};

/// What AveragesMixin does, whatever the composition.
class AveragesMixinBase {
 public:
  explicit AveragesMixinBase(AveragesConfig config);
  ~AveragesMixinBase();

  static void fill_plan(const AveragesConfig& config, RunPlan& plan);

 protected:
  void set_up(TrainerBase& trainer);
  void warn(const TrainerBase& trainer) const;
  void update_if_due(const State& state, const StepResult& result);
  void update_if_epoch_ends(const TrainerBase& trainer);
  void describe_averages(std::vector<ScreenLine>& lines) const;

 private:
  AveragesConfig config_;
  std::unique_ptr<WeightAverages> averages_;  ///< None: nothing is averaged.
};

/// Keeps an average of the weights over the steps, exponential or equal, beside the weights that
/// are trained: in checkpoints as the part `averages`, and in validations where that is asked for.
template <class Derived>
class AveragesMixin : public Mixin<Derived, AveragesMixin>, private AveragesMixinBase {
 public:
  static constexpr std::string_view kSection = "averages";
  static constexpr std::string_view kMeaning = "an average of the weights over the steps";
  using Config = AveragesConfig;
  // What is averaged is the model as it is wrapped and adapted.
  using After = MixinList<ParallelMixin, LoraMixin>;
  using Hooks = HookList<FillPlan, Setup, TrainingStart, StepEnd, StepUndone, StartScreen>;

  using AveragesMixinBase::AveragesMixinBase;
  using AveragesMixinBase::fill_plan;

  void on_setup() { set_up(this->trainer()); }
  void on_training_start(const State&) { warn(this->trainer()); }
  void on_step_end(const State& state, const StepResult& result) { update_if_due(state, result); }
  void on_step_undone(const State&) { update_if_epoch_ends(this->trainer()); }
  void on_start_screen(std::vector<ScreenLine>& lines) { describe_averages(lines); }
};

}  // namespace phalanx
