// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/mixins/undone_step.h"
#include "trainer/mixins/validation_progress.h"

namespace phalanx {

class TrainerBase;
struct RunPlan;
template <class Derived>
class AveragesMixin;

/// The texts of a validation.
struct ValidationTextsConfig {
  int64_t n = 0;

  static void describe(config::Schema<ValidationTextsConfig>& s);
};

/// The section `validation`: when to validate, and on how much.
struct ValidationConfig {
  std::optional<int64_t> every_n_steps;
  std::optional<int64_t> every_n_epochs;
  bool at_end = true;
  bool at_start = false;
  std::optional<int64_t> max_batches;
  std::map<std::string, std::vector<std::filesystem::path>> sets;
  ValidationTextsConfig generate;

  static void describe(config::Schema<ValidationConfig>& s);

  ValidationAmount amount() const { return {.max_batches = max_batches, .texts = generate.n}; }

  /// Whether anything says when to validate.
  bool validates() const { return every_n_steps || every_n_epochs || at_end || at_start; }

  /// Whether to validate after this step.
  bool due(const State& state, const StepResult& result) const;

  /// Whether to validate after a step that a guard has undone, by what ends with it: the state is
  /// that of the step gone back to, which `every_n_steps` has had validated.
  bool due_undone(const State& state, const StepResult& end) const;
};

inline constexpr std::string_view kValidationSection = "validation";

/// Fills in the check that the files of the sets are there.
void plan_validation(const ValidationConfig& config, RunPlan& plan);

/// Opens the named sets: each by a task of its own, so that it has its own metrics. Before the
/// model is wrapped, as these tasks look at it. Does nothing for a trainer that does not validate.
/// Throws UserError.
void open_validation_sets(TrainerBase& trainer, const ValidationConfig& config);

/// Warns of a validation that is asked for, and of kept best checkpoints, if there is no data for
/// it. On rank 0.
void warn_without_validation(const TrainerBase& trainer, const ValidationConfig& config);

/// Takes the named sets out of a resolved config, for a use of the model that does not measure on
/// them: their files need not be there.
void leave_out_validation_sets(config::Node& resolved);
/// Throws UserError where the schedule goes by a metric that the rehearsal has not given.
void require_metric_of_schedule(const TrainerBase& trainer);

/// The section's amount; all data and no texts where the composition has no such section.
ValidationAmount validation_amount(const config::Node& resolved);

/// Validates before the first step, every n steps or epochs and at the end of training, as asked;
/// first of all what a signal has ended before the run was resumed. Else one micro-batch is
/// validated before the first step, as a rehearsal.
/// It hangs on the end of a step, so that a checkpoint of the same step knows that the validation
/// has been.
template <class Derived>
class ValidationMixin : public Mixin<Derived, ValidationMixin> {
 public:
  static constexpr std::string_view kSection = kValidationSection;
  static constexpr std::string_view kMeaning = "when to validate, and on how much";
  using Config = ValidationConfig;
  using After =
      MixinList<AveragesMixin>;  // a step's weights are averaged before they are validated
  using Hooks = HookList<FillPlan, Prepare, TrainingStart, StepEnd, StepUndone>;

  explicit ValidationMixin(Config config) : config_(std::move(config)) {}

  static void fill_plan(const ValidationConfig& config, RunPlan& plan) {
    plan_validation(config, plan);
  }

  void on_prepare() { open_validation_sets(this->trainer(), config_); }

  void on_training_start(const State& state) {
    auto& trainer = this->trainer();
    warn_without_validation(trainer, config_);
    const bool is_due = (config_.at_start && state.step == 0) || state.validation_due;
    const int64_t of_round = trainer.training().batch_size * trainer.shares();
    const int64_t texts = std::min(config_.generate.n, of_round);
    // One that is due comes before the first step anyway, and its texts at its end.
    const bool rehearses = is_due ? texts > 0 : config_.validates() && !trainer.finished();
    if (rehearses && trainer.can_validate()) trainer.rehearse_validation(texts);
    require_metric_of_schedule(trainer);
    if (is_due) validate();
  }

  void on_step_end(const State& state, const StepResult& result) {
    if (config_.due(state, result)) validate();
  }

  // It may have been the last step of an epoch or of the run.
  void on_step_undone(const State& state) {
    if (config_.due_undone(state, end_of_undone_step(this->trainer()))) validate();
  }

 private:
  void validate() {
    auto& trainer = this->trainer();
    if (!trainer.can_validate()) return;
    show_validation(trainer.ranks(),
                    [&](const WorkCount& count) { trainer.validate(config_.amount(), count); });
  }

  Config config_;
};

}  // namespace phalanx
