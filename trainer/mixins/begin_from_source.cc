// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/begin_from_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/sources.h"
#include "trainer/checkpoint/load/warm_start.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/mixins/first_weights.h"
#include "trainer/mixins/going_on.h"
#include "trainer/mixins/load_vocabulary.h"
#include "trainer/mixins/never_acts.h"
#include "trainer/mixins/task_weights.h"
#include "trainer/ranks/ranks.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

// A checkpoint of another program, or imported from one, holds a model only.
bool holds_a_run(const Manifest& manifest) {
  return std::any_of(manifest.tensors.begin(), manifest.tensors.end(),
                     [](const ManifestTensor& tensor) { return tensor.part == kRngPart; });
}

void require_run(const Checkpoint& checkpoint, const CheckpointConfig& config) {
  if (holds_a_run(checkpoint.manifest)) return;
  throw UserError(
      fmt::format("'{}' holds a model and nothing else: set checkpoint.load_model_only=true",
                  config.load_from->string()));
}

/// What was taken of a model.
struct TakenModel {
  std::string text;                    ///< What the start prints of it.
  std::vector<std::string> differing;  ///< Tensors that one side lacks.
  std::vector<std::string> notes;
};

TakenModel take_model(TrainerBase& trainer, const CheckpointConfig& config, const Checkpoint& named,
                      const std::string& name) {
  const TaskModel& model = trainer.task_model();
  const auto rows = rows_of_source(config, *chosen_section<ModelBase>(trainer.resolved_config()),
                                   named, model.task().text().tokenizer.get());
  const SharedModules shared = shared_modules(named, model.views(), trainer.model());
  TakenModel taken{.notes = shared.notes};
  show_on_first_rank(Console::standard(), trainer.ranks(), name, [&](ByteProgress& progress) {
    taken.differing =
        warm_start(shared.source, shared.views,
                   {.strict = config.load_strict, .prefixes = {}, .rows = rows}, &progress);
  });
  taken.text = loaded_model_text(shared.source, shared.views) + (rows ? ", " + rows->text() : "");
  return taken;
}

}  // namespace

// A message that begins with a field has its own.
void check_source(const CheckpointConfig& config, const config::Node& resolved) {
  try {
    check_first_weights(config, resolved);
  } catch (const UserError& error) {
    const std::string problem = error.what();
    const bool has_field = problem.starts_with("checkpoint.") || problem.starts_with("task.");
    if (has_field || problem.find("load_from") != std::string::npos) throw;
    throw UserError(fmt::format("checkpoint.load_from{}: {}",
                                place_of(resolved, {"checkpoint.load_from"}), problem));
  }
}

std::string begin_from_source(TrainerBase& trainer, const Attachments& attachments,
                              const CheckpointConfig& config) {
  const Ranks& ranks = trainer.ranks();
  std::vector<std::filesystem::path> sources;
  on_first_rank(ranks, [&] {
    check_source(config, trainer.resolved_config());  // ranks may come from a launcher
    sources = sources_at(*config.load_from);
  });
  const std::string name = "loading " + config.load_from->string();
  TakenModel taken;
  RngStates random;
  const auto load = [&](const Checkpoint& checkpoint) {
    const Checkpoint named = named_as_ours(checkpoint, config, trainer.resolved_config());
    if (config.load_model_only) {
      taken = take_model(trainer, config, named, name);
      return;
    }
    require_run(checkpoint, config);
    require_same_course(trainer, checkpoint, attachments, config,
                        "take its weights alone (checkpoint.load_model_only=true)");
    random = load_run(trainer, named, name);
  };
  const LoadedCheckpoint loaded = load_first_good(ranks, sources, load, {.open = open_source});
  if (!config.load_model_only) return go_on_from(trainer, loaded, random, config);
  warn_of(loaded.warnings, ranks);
  warn_of(taken.differing, ranks);
  tell(taken.notes, ranks);
  return taken.text;
}

}  // namespace phalanx
