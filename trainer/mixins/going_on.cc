// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/going_on.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

#include "trainer/api/batch_source.h"
#include "trainer/api/stateful.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/config/tree/node.h"
#include "trainer/hugging_face/carried_files.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"

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

std::string step_text(const Manifest& manifest) {
  return manifest.state.step == 0 ? "" : fmt::format("step {}, ", manifest.state.step);
}

}  // namespace

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

void restore_kept_state(const TrainerBase& trainer, const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  std::set<std::string> there = further_parts(manifest);
  std::vector<std::string> new_here;
  for (const NamedStateful& kept : trainer.kept_state()) {
    if (there.erase(kept.name) == 0) {
      if (brings_anything(kept)) new_here.push_back(kept.name);
      continue;
    }
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
  if (!trainer.ranks().is_first()) return;
  const std::string name = checkpoint.path.filename().string();
  const auto say = [](const std::string& line) { Console::standard().line("note: " + line); };
  if (!new_here.empty()) {
    say(fmt::format("{} holds no state of {}: the run begins it anew at step {}", name,
                    fmt::join(new_here, ", "), manifest.state.step));
  }
  if (!there.empty()) {
    say(
        fmt::format("{} also holds the state of {}, which this run does not use: the next "
                    "checkpoints lack it",
                    name, fmt::join(there, ", ")));
  }
}

std::string loaded_run_text(const TrainerBase& trainer, const Checkpoint& checkpoint) {
  return fmt::format("{}: step {}, {} tensors of the model and {} of the optimizer",
                     checkpoint.path.string(), checkpoint.manifest.state.step,
                     trainer.task_model().views().size(), trainer.optimizer_state().size());
}

std::string loaded_model_text(const Checkpoint& named, std::span<const ShardedTensorView> views) {
  const TensorCounts counts = count_tensors(named.manifest, kModelPart, views);
  std::string text = fmt::format("{}: {}{} tensors taken, {} left there", named.path.string(),
                                 step_text(named.manifest), counts.shared, counts.unexpected);
  if (counts.missing > 0) text += fmt::format(", {} missing there and initialised", counts.missing);
  return text;
}

}  // namespace phalanx
