// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/mixins/adapter_base.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/mixins/save_schedule.h"

namespace phalanx {

class Ranks;
class TrainerBase;
template <class Derived>
class AveragesMixin;
template <class Derived>
class EarlyStoppingMixin;
template <class Derived>
class LoraMixin;
template <class Derived>
class ValidationMixin;

class BackgroundSave;
class KeptPlan;
struct LoadedCheckpoint;
struct Manifest;
struct SavedCheckpoint;
struct SaveOptions;
struct Snapshot;

/// What CheckpointMixin does, whatever the composition.
class CheckpointMixinBase {
 public:
  explicit CheckpointMixinBase(CheckpointConfig config);
  ~CheckpointMixinBase();

  static void complete_config(config::Node& tree);
  static void fill_plan(const CheckpointConfig& config, RunPlan& plan);

 protected:
  void restore(TrainerBase& trainer);
  void describe_loaded(std::vector<ScreenLine>& lines) const;
  void save_anew_if_lacking(TrainerBase& trainer);
  /// Throws UserError where the best are kept by a value that is not among these; none are known
  /// where they are empty.
  void require_metric(const TrainerBase& trainer, const std::vector<std::string>& given) const;
  void keep_metrics(const TrainerBase& trainer, const NamedValues& metrics);
  void save_if_due(TrainerBase& trainer, const StepResult& result);
  void save_if_validated(TrainerBase& trainer);
  void save_as_asked(TrainerBase& trainer);
  void save_last(TrainerBase& trainer);

 private:
  // What a checkpoint holds: a step, perhaps before the end of its validation.
  struct Place {
    int64_t step = 0;
    bool validation_due = false;

    bool operator==(const Place&) const = default;
  };

  static Place place_of(const State& state) {
    return {.step = state.step, .validation_due = state.validation_due};
  }

  std::vector<std::filesystem::path> prepare_folder(TrainerBase& trainer) const;
  void go_back(TrainerBase& trainer);
  void keep_metrics_of(const Manifest& manifest);
  void begin(TrainerBase& trainer, const Attachments& attachments);
  Attachments files_to_go_along(const LoadedCheckpoint& loaded) const;
  void tell_of_tokenizer(const Ranks& ranks, const Attachments& attachments) const;
  void keep_attachments(const TrainerBase& trainer, Attachments of_task,
                        const LoadedCheckpoint& loaded);
  void require_room_for_saves(const TrainerBase& trainer) const;
  Snapshot snapshot_of(const TrainerBase& trainer) const;
  SaveOptions save_options() const;
  void save_now(TrainerBase& trainer);
  void save(TrainerBase& trainer);
  void save_in_background(TrainerBase& trainer);
  void finish_background(const Ranks& ranks);
  void guard(const Ranks& ranks, int64_t step, const std::function<void()>& saving) const;
  [[noreturn]] void fail_at_end(const TrainerBase& trainer) const;
  void conclude(const Ranks& ranks, Place place, const std::function<SavedCheckpoint()>& saving);

  CheckpointConfig config_;
  SaveSchedule schedule_;
  /// On rank 0, the task's and those that go along (carried_files): shared with a save in the
  /// background, so that none copies them.
  std::shared_ptr<const Attachments> attachments_;
  NamedValues metrics_;  ///< Results of the last validation, or of the step gone on from.
  std::optional<int64_t> metrics_step_;
  std::unique_ptr<BackgroundSave> background_;  ///< From the first save on, where it is asked for.
  std::unique_ptr<KeptPlan> kept_plan_;         ///< From save to save.
  Place background_place_;                      ///< What it saves, or saved last.
  AdapterBase base_;
  std::string loaded_text_;  ///< What the run begins with; empty: what it has drawn.
  std::optional<int64_t> resumed_step_;
  std::optional<Place> saved_;     ///< Last, or resumed from.
  bool lacks_state_ = false;       ///< That was resumed from: a state to go back to.
  std::set<int64_t> asked_steps_;  ///< That a signal asked to save, and that are not saved yet.
};

/// Saves a run every n steps or seconds, at its end and, where the best are kept, when it was
/// validated, and goes on from the newest good checkpoint of its folder: model, optimizer, random
/// numbers, place in the data.
template <class Derived>
class CheckpointMixin : public Mixin<Derived, CheckpointMixin>, private CheckpointMixinBase {
 public:
  static constexpr std::string_view kSection = "checkpoint";
  static constexpr std::string_view kMeaning = "when to save, what to keep, whether to go on";
  using Config = CheckpointConfig;
  // A step's metrics, averages and what follows from them are saved with it; adapters need what
  // they are trained beside.
  using After = MixinList<LoraMixin, AveragesMixin, ValidationMixin, EarlyStoppingMixin>;
  using Hooks = HookList<CompleteConfig, FillPlan, Restore, StartScreen, TrainingStart, StepEnd,
                         StepUndone, ValidationEnd, SaveRequest, TrainingEnd>;

  using CheckpointMixinBase::CheckpointMixinBase;
  using CheckpointMixinBase::complete_config;
  using CheckpointMixinBase::fill_plan;

  void on_restore() { restore(this->trainer()); }
  void on_start_screen(std::vector<ScreenLine>& lines) { describe_loaded(lines); }
  void on_training_start(const State&) {
    // What the rehearsal of a validation has given: not after hours of training.
    require_metric(this->trainer(), this->trainer().validation_names());
    save_anew_if_lacking(this->trainer());
  }
  void on_step_end(const State&, const StepResult& result) { save_if_due(this->trainer(), result); }
  void on_step_undone(const State&) { save_if_validated(this->trainer()); }
  void on_validation_end(const State&, const NamedValues& metrics) {
    keep_metrics(this->trainer(), metrics);
  }
  void on_save_request(const State&) { save_as_asked(this->trainer()); }
  void on_training_end(const State&) { save_last(this->trainer()); }
};

}  // namespace phalanx
