// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/checkpoint_mixin.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/api/adapters.h"
#include "trainer/api/named_metrics.h"
#include "trainer/api/task.h"
#include "trainer/base/stop_wait.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/retention/room.h"
#include "trainer/checkpoint/save/background_save.h"
#include "trainer/checkpoint/save/kept_plan.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/node.h"
#include "trainer/hugging_face/carried_files.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/begin_from_source.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/mixins/first_weights.h"
#include "trainer/mixins/going_back.h"
#include "trainer/mixins/going_on.h"
#include "trainer/mixins/task_weights.h"
#include "trainer/mixins/undone_step.h"
#include "trainer/plan/run_plan.h"
#include "trainer/ranks/failures/communication_error.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

std::filesystem::path folder_of(const TrainerBase& trainer) {
  return std::filesystem::path(trainer.config().exp_dir) / "checkpoints";
}

void warn_of(const std::exception& error, int64_t step) {
  Console::standard().line(
      fmt::format("warning: the checkpoint of step {} was not saved: {}", step, error.what()));
}

uint64_t bytes_of(const Attachments& attachments) {
  uint64_t bytes = 0;
  for (const Attachment& attachment : attachments) bytes += attachment.content.size();
  return bytes;
}

// Stopped before its first step: it begins anew as it has begun now.
bool is_untouched(const TrainerBase& trainer) {
  const State& state = trainer.state();
  return state.step == 0 && state.samples == 0 && !trainer.finished();
}

std::string name_of_save(int64_t step) { return fmt::format("saving step {}", step); }

}  // namespace

void CheckpointMixinBase::complete_config(config::Node& tree) { complete_model(tree); }

void CheckpointMixinBase::fill_plan(const CheckpointConfig& config, RunPlan& plan) {
  if (plan.adapt_model) require_adapter_base(config);
  plan.load_from = config.load_from;
  if (!config.load_from) return;
  plan.check_first_weights = [config](const config::Node& resolved) {
    check_source(config, resolved);
  };
}

CheckpointMixinBase::CheckpointMixinBase(CheckpointConfig config)
    : config_(std::move(config)), schedule_(config_), kept_plan_(std::make_unique<KeptPlan>()) {}
CheckpointMixinBase::~CheckpointMixinBase() = default;

// Made ready by rank 0, which alone looks into the folder; the order in which to try them is its.
std::vector<std::filesystem::path> CheckpointMixinBase::prepare_folder(TrainerBase& trainer) const {
  const auto folder = folder_of(trainer);
  std::vector<std::filesystem::path> found;
  on_first_rank(trainer.ranks(), [&] {
    require_writable(folder);
    for (const auto& done : clean_leftovers(folder)) {
      Console::standard().line("checkpoint: " + done);
    }
    found = candidates(folder);
    if (found.empty() || config_.resume != Resume::never) return;
    throw UserError(fmt::format(
        "{} holds checkpoints and checkpoint.resume is never: choose another exp_dir, or set "
        "checkpoint.resume=auto to go on from {}",
        trainer.config().exp_dir, found.front().filename().string()));
  });
  return found;
}

void CheckpointMixinBase::restore(TrainerBase& trainer) {
  trainer.ranks().set_activity("restoring a checkpoint");
  Attachments attachments = trainer.task_model().task().attachments();
  require_attachable(attachments);
  RngStates random;
  base_ = load_adapter_base(Console::standard(), trainer.ranks(), trainer.task_model(),
                            trainer.resolved_config());
  const auto load = [&](const Checkpoint& checkpoint) {
    base_.require_that_of(checkpoint);
    require_same_course(trainer, checkpoint, attachments, config_,
                        "start a new run without exp_dir");
    random = load_run(trainer, checkpoint, "loading " + checkpoint.path.filename().string());
  };
  const LoadedCheckpoint loaded =
      load_first_good(trainer.ranks(), prepare_folder(trainer), load,
                      {.advice = "bring one back from a copy, or move them away to begin again"});
  if (loaded.checkpoint) {
    loaded_text_ = go_on_from(trainer, loaded, random, config_);
    const Manifest& manifest = loaded.checkpoint->manifest;
    saved_ = place_of(manifest.state);
    resumed_step_ = saved_->step;
    keep_metrics_of(manifest);
    lacks_state_ =
        may_go_back(trainer.resolved_config()) && differs_in_kept_state(trainer, manifest);
    // Where a newer one was skipped, the next save moves it: what failed to be read may be back
    // then.
    if (trainer.ranks().is_first() && loaded.warnings.empty()) {
      const std::string warning = repair_latest(folder_of(trainer), saved_->step);
      if (!warning.empty()) warn_of({warning}, trainer.ranks());
    }
  } else {
    begin(trainer, attachments);
  }
  keep_attachments(trainer, std::move(attachments), loaded);
  require_room_for_saves(trainer);
  trainer.go_back_by([this, &trainer] { go_back(trainer); });
}

// In the midst of the training, with the data where it is.
void CheckpointMixinBase::go_back(TrainerBase& trainer) {
  if (background_ && background_->is_under_way()) finish_background(trainer.ranks());
  keep_metrics_of(go_back_to_newest(trainer, folder_of(trainer)));
  // The next save of this step says another place in the data.
  saved_.reset();
}

void CheckpointMixinBase::keep_metrics_of(const Manifest& manifest) {
  metrics_ = manifest.metrics;
  metrics_step_ = metrics_.empty() ? std::nullopt : std::optional<int64_t>(manifest.state.step);
}

// A new run, with the first weights that the config and the task name.
void CheckpointMixinBase::begin(TrainerBase& trainer, const Attachments& attachments) {
  if (config_.load_from) {
    if (!has_adapters(trainer.model())) {
      loaded_text_ = begin_from_source(trainer, attachments, config_);
    }
    tell(base_.notes(), trainer.ranks());
    tell_of_tokenizer(trainer.ranks(), attachments);
    if (!config_.load_model_only) return;  // The task's modules are those of that run.
  }
  for (const std::string& text :
       load_task_modules(Console::standard(), trainer.ranks(), trainer.task_model())) {
    loaded_text_ += (loaded_text_.empty() ? "" : "; ") + text;
  }
}

void CheckpointMixinBase::describe_loaded(std::vector<ScreenLine>& lines) const {
  if (!loaded_text_.empty()) lines.push_back({.name = "loaded", .text = loaded_text_});
}

void CheckpointMixinBase::tell_of_tokenizer(const Ranks& ranks,
                                            const Attachments& attachments) const {
  if (!ranks.is_first()) return;
  const std::string note = tokenizer_note(config_, attachments);
  if (!note.empty()) Console::standard().line("note: " + note);
}

// Those of the checkpoint that the run goes on from, or of what it begins with.
Attachments CheckpointMixinBase::files_to_go_along(const LoadedCheckpoint& loaded) const {
  if (loaded.checkpoint) return read_attachments(*loaded.checkpoint);
  return config_.load_from ? files_of_source(*config_.load_from) : Attachments();
}

// Only rank 0 writes them.
void CheckpointMixinBase::keep_attachments(const TrainerBase& trainer, Attachments of_task,
                                           const LoadedCheckpoint& loaded) {
  on_first_rank(trainer.ranks(), [&] {
    Attachments files = carried_files(std::move(of_task), files_to_go_along(loaded),
                                      trainer.task_model().task().text().end_of_text);
    if (files.empty()) return;
    require_attachable(files);
    attachments_ = std::make_shared<const Attachments>(std::move(files));
  });
}

// Before hours of training, not after them.
void CheckpointMixinBase::require_room_for_saves(const TrainerBase& trainer) const {
  const auto folder = folder_of(trainer);
  require_shared(trainer.ranks(), folder);
  uint64_t bytes = checkpoint_bytes(trainer.ranks(), trainer.task_model().views(),
                                    trainer.optimizer_state(), parts_of(trainer));
  on_first_rank(trainer.ranks(), [&] {
    if (attachments_) bytes += bytes_of(*attachments_);
    const Retention retention = save_options().retention;
    const bool stops = config_.on_error == OnSaveError::stop;
    try {
      require_room(
          folder, retention,
          checkpoints_to_come(retention, committed_steps(folder), schedule_.saves_to_come(trainer)),
          bytes, stops ? WithoutRoom::ends : WithoutRoom::goes_on);
    } catch (const UserError& error) {
      if (stops) throw;
      Console::standard().line(fmt::format("warning: {}", error.what()));
    }
  });
}

void CheckpointMixinBase::require_metric(const TrainerBase& trainer,
                                         const std::vector<std::string>& given) const {
  if (!config_.keep_best || trainer.purpose() != Purpose::training || given.empty()) return;
  phalanx::require_metric(given, config_.keep_best->metric, "checkpoint.keep_best.metric");
}

void CheckpointMixinBase::keep_metrics(const TrainerBase& trainer, const NamedValues& metrics) {
  metrics_ = metrics;
  metrics_step_ = trainer.state().step;
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  require_metric(trainer, names);
}

void CheckpointMixinBase::save_if_due(TrainerBase& trainer, const StepResult& result) {
  if (result.save_requested) asked_steps_.insert(trainer.state().step);
  // The save at the end follows, and knows that the epoch has ended.
  if (result.ends_training) return;
  if (background_ && background_->is_under_way() && background_->is_done()) {
    finish_background(trainer.ranks());
  }
  const bool was_validated = metrics_step_ == trainer.state().step;
  if (schedule_.is_due(trainer, result, was_validated)) save_now(trainer);
}

void CheckpointMixinBase::save_as_asked(TrainerBase& trainer) {
  asked_steps_.insert(trainer.state().step);
  save_now(trainer);
}

void CheckpointMixinBase::save_now(TrainerBase& trainer) {
  trainer.settle();
  if (config_.async) {
    save_in_background(trainer);
  } else {
    save(trainer);
  }
}

// The checkpoint that was resumed from says that its validation is due, and lacks what that has
// measured now; or it lacks a state that the run would have to go back to.
void CheckpointMixinBase::save_anew_if_lacking(TrainerBase& trainer) {
  State after = trainer.state();
  const bool lacks_validation = saved_ && saved_->validation_due && metrics_step_ == after.step;
  if (!lacks_validation && !lacks_state_) return;
  if (after.epoch_samples >= trainer.samples_an_epoch()) ++after.epoch;
  const bool ends_here = trainer.training().limit_reached(after);
  if (!ends_here) save(trainer);  // The save at the end follows.
}

// Where the best are kept, as after any other step that is validated.
void CheckpointMixinBase::save_if_validated(TrainerBase& trainer) {
  const StepResult end = end_of_undone_step(trainer);
  const bool was_validated = metrics_step_ == trainer.state().step;
  if (config_.keep_best && was_validated && end.ends_epoch && !end.ends_training) save_now(trainer);
}

void CheckpointMixinBase::save_last(TrainerBase& trainer) {
  if (background_ && background_->is_under_way()) {
    try {
      finish_background(trainer.ranks());
    } catch (const std::exception& error) {
      if (background_place_ != place_of(trainer.state())) warn_of(error, background_place_.step);
      // What follows is newer.
    }
  }
  if (saved_ == place_of(trainer.state())) return;
  if (!saved_ && is_untouched(trainer)) {
    if (!trainer.ranks().is_first()) return;
    return Console::standard().line(
        "checkpoint: none is saved, as no step was trained: the next start begins anew");
  }
  save(trainer);
  if (saved_ != place_of(trainer.state())) fail_at_end(trainer);
}

// With on_error=warn a failed save is no reason to stop, but one to say so: what follows the newest
// checkpoint ends with the process.
void CheckpointMixinBase::fail_at_end(const TrainerBase& trainer) const {
  const std::string message = fmt::format(
      "the checkpoint of the last step, {}, was not saved: {}", trainer.state().step,
      saved_ ? fmt::format("step {} is the newest on disk, and the same command goes on from it",
                           saved_->step)
             : std::string("the run has none"));
  if (!trainer.ranks().is_first()) throw CommunicationError(message);
  throw SaveError(message, true);
}

Snapshot CheckpointMixinBase::snapshot_of(const TrainerBase& trainer) const {
  return {.state = trainer.state(),
          .model = trainer.task_model().views(),
          .optimizer = trainer.optimizer_state(),
          .rng_states = rng_states(trainer.device()),
          .config = config::to_json(trainer.resolved_config()),
          .data_fingerprint = trainer.training_data().fingerprint(),
          .seed = static_cast<uint64_t>(trainer.training().seed),
          .global_batch_size = trainer.global_batch_size(),
          .metrics = metrics_step_ == trainer.state().step ? metrics_ : NamedValues(),
          .reduction_order = trainer.task_model().reduction_order(),
          .attachments = attachments_,
          .base = base_.fingerprint(),
          .parts = parts_of(trainer)};
}

SaveOptions CheckpointMixinBase::save_options() const {
  SaveOptions options{
      .retention = config_.retention(), .sha256 = config_.sha256, .kept_plan = kept_plan_.get()};
  options.retention.resumed_step = resumed_step_;
  return options;
}

void CheckpointMixinBase::save(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  const Place place = place_of(trainer.state());
  const StopWait wait("this checkpoint");
  ranks.set_activity(name_of_save(place.step));
  conclude(ranks, place, [&] {
    SavedCheckpoint saved;
    const std::string name = name_of_save(place.step);
    show_on_first_rank(Console::standard(), ranks, name, [&](ByteProgress& progress) {
      SaveOptions options = save_options();
      options.progress = &progress;
      saved = save_checkpoint(folder_of(trainer), snapshot_of(trainer), options, ranks);
    });
    return saved;
  });
  schedule_.restart_clock();
}

void CheckpointMixinBase::save_in_background(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  const int64_t step = trainer.state().step;
  ranks.set_activity(fmt::format("beginning to save step {}", step));
  if (!background_) {
    background_ = std::make_unique<BackgroundSave>(ranks.separate("saving in the background"));
  }
  const bool is_busy = background_->is_under_way() && !background_->is_done();
  // Rank 0's word counts: the others may be a little further, or not as far.
  if (config_.while_saving == WhileSaving::skip && trainer.of_first_rank(is_busy ? 1 : 0) != 0) {
    if (ranks.is_first()) {
      Console::standard().line(
          fmt::format("warning: step {} is not saved, as step {} is still being written", step,
                      background_place_.step));
    }
    return;
  }
  if (background_->is_under_way()) finish_background(ranks);
  background_place_ = place_of(trainer.state());
  guard(ranks, step, [&] {
    background_->start(folder_of(trainer), snapshot_of(trainer), save_options(), ranks);
  });
  schedule_.restart_clock();
}

void CheckpointMixinBase::finish_background(const Ranks& ranks) {
  show_on_first_rank(
      Console::standard(), ranks, name_of_save(background_place_.step), background_->progress(),
      [&] { conclude(ranks, background_place_, [&] { return background_->finish(); }); });
}

void CheckpointMixinBase::conclude(const Ranks& ranks, Place place,
                                   const std::function<SavedCheckpoint()>& saving) {
  guard(ranks, place.step, [&] {
    const SavedCheckpoint saved = saving();
    for (const auto& warning : saved.warnings) Console::standard().line("warning: " + warning);
    saved_ = place;
    if (asked_steps_.erase(place.step) == 0 || !ranks.is_first()) return;
    Console::standard().line(fmt::format("saved step {} (SIGUSR1)", place.step));
  });
}

void CheckpointMixinBase::guard(const Ranks& ranks, int64_t step,
                                const std::function<void()>& saving) const {
  try {
    saving();
  } catch (const SaveError& error) {
    if (config_.on_error == OnSaveError::warn) {
      if (ranks.is_first()) warn_of(error, step);
      return;
    }
    // The rank where it failed is the one to tell of it.
    if (!error.is_here()) throw CommunicationError(error.what());
    throw;
  }
}

}  // namespace phalanx
