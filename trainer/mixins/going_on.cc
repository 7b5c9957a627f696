// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/going_on.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <set>
#include <string_view>

#include "trainer/api/batch_source.h"
#include "trainer/api/stateful.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/node.h"
#include "trainer/hugging_face/carried_files.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/mixins/other_validation.h"
#include "trainer/mixins/schedule_notes.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

bool has_other_samples(const TrainerBase& trainer, const Manifest& manifest) {
  return manifest.data_fingerprint != trainer.training_data().fingerprint();
}

// Their order and what is made of them is in the config, and not in the fingerprint.
bool has_other_data(const TrainerBase& trainer, const Manifest& manifest,
                    const config::Node& earlier) {
  const config::Node* before = earlier.find_path("task.data");
  const config::Node* now = trainer.resolved_config().find_path("task.data");
  const bool differs = before != nullptr && now != nullptr && !config::same_value(*before, *now);
  return differs || has_other_samples(trainer, manifest);
}

// Epochs of two data sets have two lengths: they say neither when the run ends nor how its learning
// rate falls.
void require_length_in_steps(const TrainingConfig& training) {
  if (training.max_steps && !training.max_epochs && !training.max_samples) return;
  throw UserError(
      "with other data (checkpoint.data_may_change) the run's length must be given in steps: set "
      "training.max_steps, and training.max_epochs and training.max_samples to null");
}

// One that brings nothing is in no checkpoint.
bool brings_anything(const NamedStateful& kept) {
  const StatePart part = kept.part();
  return !part.tensors.empty() || !part.json.empty();
}

// That of the run until now; empty where the checkpoint does not say it.
config::Node config_of(const Manifest& manifest) {
  return config::parse_json(manifest.config, std::string(kManifestFile));
}

std::string step_text(const Manifest& manifest) {
  return manifest.state.step == 0 ? "" : fmt::format("step {}, ", manifest.state.step);
}

// Where the run goes on: with other data in a new epoch, as no place in the old order is one in the
// new.
State state_to_go_on_from(const TrainerBase& trainer, const Manifest& manifest,
                          const CheckpointConfig& config, const config::Node& earlier) {
  State state = manifest.state;
  if (!config.data_may_change || !has_other_data(trainer, manifest, earlier)) return state;
  require_length_in_steps(trainer.training());
  state.validation_due = false;  // it was of the earlier data
  if (state.epoch_samples > 0) {
    ++state.epoch;
    state.epoch_samples = 0;
  }
  if (trainer.ranks().is_first()) {
    Console::standard().line(fmt::format(
        "data: another one from step {} on (checkpoint.data_may_change), after {} samples of the "
        "earlier; epoch {} begins with its {} samples in the order of seed {}",
        state.step, state.samples, state.epoch, trainer.training_data().samples_per_epoch(),
        trainer.training().seed));
  }
  return state;
}

// "runs/a/checkpoints/step-00000040: step 40, 28 tensors of the model and 56 of the optimizer".
std::string loaded_run_text(const TrainerBase& trainer, const Checkpoint& checkpoint) {
  return fmt::format("{}: step {}, {} tensors of the model and {} of the optimizer",
                     checkpoint.path.string(), checkpoint.manifest.state.step,
                     trainer.task_model().views().size(), trainer.optimizer_state().size());
}

}  // namespace

void warn_of(const std::vector<std::string>& warnings, const Ranks& ranks) {
  if (!ranks.is_first()) return;
  for (const auto& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

void tell(const std::vector<std::string>& notes, const Ranks& ranks) {
  if (!ranks.is_first()) return;
  for (const auto& note : notes) Console::standard().line("note: " + note);
}

void require_same_course(TrainerBase& trainer, const Checkpoint& checkpoint,
                         const Attachments& attachments, const CheckpointConfig& config,
                         const std::string& other_way) {
  const Manifest& manifest = checkpoint.manifest;
  if (!config.data_may_change && has_other_samples(trainer, manifest)) {
    throw UserError(fmt::format(
        "the training data is not what {} was trained on (its fingerprint differs): give back the "
        "same files, set checkpoint.data_may_change=true to train on with this data from step {} "
        "on, or {}",
        checkpoint.path.string(), manifest.state.step, other_way));
  }
  std::vector<std::string> carried;
  for (const auto& [name, file] : manifest.attachments) carried.push_back(name);
  require_same_attachments(checkpoint, attachments, names_that_go_along(carried));
  trainer.keep_global_batch_size(manifest.global_batch_size);
}

std::vector<std::string> lacking_parts(const TrainerBase& trainer, const Manifest& manifest) {
  const std::set<std::string> there = further_parts(manifest);
  std::vector<std::string> lacking;
  for (const NamedStateful& kept : trainer.kept_state()) {
    if (!there.contains(kept.name) && brings_anything(kept)) lacking.push_back(kept.name);
  }
  return lacking;
}

void restore_kept_state(const TrainerBase& trainer, const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  const std::set<std::string> there = further_parts(manifest);
  for (const NamedStateful& kept : trainer.kept_state()) {
    if (!there.contains(kept.name)) continue;
    const auto json = manifest.parts.find(kept.name);
    try {
      kept.state->restore(json == manifest.parts.end() ? std::string_view() : json->second);
    } catch (const UserError& error) {
      throw UserError(fmt::format(
          "{} (the part '{}' of {}): a new run can begin with its model alone, by "
          "checkpoint.load_from={} checkpoint.load_model_only=true and another exp_dir",
          error.what(), kept.name, checkpoint.path.filename().string(), checkpoint.path.string()));
    }
  }
}

void tell_of_parts(const TrainerBase& trainer, const Checkpoint& checkpoint) {
  const std::string name = checkpoint.path.filename().string();
  std::set<std::string> unused = further_parts(checkpoint.manifest);
  for (const NamedStateful& kept : trainer.kept_state()) unused.erase(kept.name);
  std::vector<std::string> notes;
  if (const auto lacking = lacking_parts(trainer, checkpoint.manifest); !lacking.empty()) {
    notes.push_back(fmt::format("{} holds no state of {}: the run begins it anew at step {}", name,
                                fmt::join(lacking, ", "), checkpoint.manifest.state.step));
  }
  if (!unused.empty()) {
    notes.push_back(
        fmt::format("{} also holds the state of {}, which this run does not use: the next "
                    "checkpoints lack it",
                    name, fmt::join(unused, ", ")));
  }
  tell(notes, trainer.ranks());
}

std::vector<StatePart> parts_of(const TrainerBase& trainer) {
  std::vector<StatePart> parts;
  for (const NamedStateful& kept : trainer.kept_state()) parts.push_back(kept.part());
  return parts;
}

RngStates load_run(const TrainerBase& trainer, const Checkpoint& checkpoint,
                   const std::string& name) {
  const Ranks& ranks = trainer.ranks();
  Loaded loaded;
  show_on_first_rank(Console::standard(), ranks, name, [&](ByteProgress& progress) {
    loaded = load_checkpoint(checkpoint, trainer.task_model().views(), trainer.optimizer_state(),
                             ranks.rank(), &progress, parts_of(trainer));
  });
  return loaded.rng_states;
}

std::string go_on_from(TrainerBase& trainer, const LoadedCheckpoint& loaded,
                       const RngStates& random, const CheckpointConfig& config) {
  warn_of(loaded.warnings, trainer.ranks());
  const Manifest& manifest = loaded.checkpoint->manifest;
  const std::string text = loaded_run_text(trainer, *loaded.checkpoint);
  const config::Node earlier = config_of(manifest);
  trainer.restore(state_to_go_on_from(trainer, manifest, config, earlier));
  restore_kept_state(trainer, *loaded.checkpoint);
  tell_of_parts(trainer, *loaded.checkpoint);
  trainer.task_model().follow_reduction_order(manifest.reduction_order);
  warn_of(moved_horizons(trainer, earlier), trainer.ranks());
  if (trainer.ranks().is_first()) {  // which alone reads the run's other checkpoints
    warn_of(other_validations(trainer, manifest, earlier), trainer.ranks());
  }
  // A rank or a device that there was not has no state to go on from.
  trainer.seed_rank();
  set_rng_states(random, trainer.device());
  return text;
}

std::string loaded_model_text(const Checkpoint& named, std::span<const ShardedTensorView> views) {
  const TensorCounts counts = count_tensors(named.manifest, kModelPart, views);
  std::string text = fmt::format("{}: {}{} tensors taken, {} left there", named.path.string(),
                                 step_text(named.manifest), counts.shared, counts.unexpected);
  if (counts.missing > 0) text += fmt::format(", {} missing there and initialised", counts.missing);
  return text;
}

}  // namespace phalanx
