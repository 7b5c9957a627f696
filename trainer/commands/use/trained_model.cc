// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/trained_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/load/averaged.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/checkpoint/load/named.h"
#include "trainer/checkpoint/load/sources.h"
#include "trainer/checkpoint/load/task_tensors.h"
#include "trainer/checkpoint/load/warm_start.h"
#include "trainer/config/syntax/compose.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/older_runs.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/hugging_face/folder_files.h"
#include "trainer/hugging_face/generation_file.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/file.h"
#include "trainer/mixins/adapter_base.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/mixins/first_weights.h"
#include "trainer/run/run_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// What a config names where a model is used that no run has trained here.
constexpr const char* kComposition = "supervised";

std::optional<fs::path> config_file_beside(const fs::path& checkpoint) {
  try {
    return config_file_of(checkpoint);
  } catch (const UserError&) {
    return std::nullopt;  // A checkpoint by itself.
  }
}

// What a run's own config lacks, its program did not know.
void leave_as_it_was(UserConfig& user) {
  config::leave_without_value(user.tree,
                              config::fields_without_value(user.entry->declaration(), user.tree));
}

// Whether it is this model in another precision: `average`, `import` and `export` write one if they
// are asked to.
bool differs_in_precision_alone(const Checkpoint& checkpoint,
                                const std::vector<ShardedTensorView>& model) {
  const Mismatches found = find_mismatches(checkpoint.manifest, kModelPart, model);
  return !found.dtypes.empty() && found.missing.empty() && found.unexpected.empty() &&
         found.shapes.empty();
}

// What the checkpoint holds of a task that is not used here, it may keep.
void fill_views(Checkpoint checkpoint, const std::vector<ShardedTensorView>& model,
                ByteProgress& progress) {
  leave_out_unknown_modules(checkpoint.manifest, model);
  if (differs_in_precision_alone(checkpoint, model)) {
    warm_start(checkpoint, model, {.strict = true, .prefixes = {}}, &progress);
  } else {
    load_model(checkpoint, model, &progress);
  }
}

// A folder of Hugging Face's libraries has none, and initial values are nothing to measure.
void require_task_modules(const Checkpoint& folder, std::vector<ShardedTensorView> views) {
  const auto absent = leave_out_absent_modules(views, folder.manifest);
  if (absent.empty()) return;
  throw UserError(fmt::format(
      "'{}' holds a model alone, and the task computes with {}: name a run that has trained it, or "
      "another task",
      folder.path.string(), fmt::join(absent, ", ")));
}

config::Node read_layer(const fs::path& file) {
  config::Diagnostics mistakes;
  config::Node layer = config::read_files(std::array{file}, mistakes);
  mistakes.throw_if_any();
  return layer;
}

void set_default(config::Node& tree, const std::string& key, config::Node value) {
  if (tree.find(key) == nullptr) tree.set(key, std::move(value));
}

}  // namespace

TrainedModel::TrainedModel(fs::path path, bool takes_average)
    : path_(std::move(path)), takes_average_(takes_average) {
  std::error_code error;
  if (fs::is_regular_file(path_, error)) {
    throw UserError(path_.string() +
                    " is a file; name the folder of a run, of a checkpoint, or one that "
                    "save_pretrained wrote");
  }
  if (is_hugging_face_folder(path_)) {
    if (!takes_average_) return;
    throw UserError(fmt::format(
        "'{}' holds one model, and no average beside it: leave out --average", path_.string()));
  }
  checkpoints_ = candidates_at(path_);
  config_file_ = config_file_beside(checkpoints_.front());
}

std::vector<fs::path> TrainedModel::present_checkpoints() const {
  std::error_code error;
  return fs::exists(checkpoints_.front(), error) ? checkpoints_ : candidates_at(path_);
}

config::Node TrainedModel::config_of_checkpoint() const {
  const fs::path checkpoint = present_checkpoints().front();
  return config::parse_json(load_manifest(checkpoint).config,
                            (checkpoint / kManifestFile).string());
}

bool TrainedModel::names_task() const {
  if (is_hugging_face()) return false;
  return config_file_ || config_of_checkpoint().find("task") != nullptr;
}

UserConfig TrainedModel::config(Arguments overrides, const std::optional<fs::path>& layer) const {
  if (layer) require_readable(*layer);
  if (config_file_) {
    std::vector<std::string> arguments{config_file_->string()};
    if (layer) arguments.push_back(layer->string());
    const size_t files = arguments.size();
    arguments.insert(arguments.end(), overrides.begin(), overrides.end());
    UserConfig user = load_config(arguments);
    if (user.files.size() > files) {
      throw UserError("a model is used with its own config: what is '" +
                      user.files.back().string() + "'?");
    }
    leave_as_it_was(user);
    return user;
  }
  config::Node tree = config::Node::map();
  if (is_hugging_face()) {
    config::Node section = config::Node::map();
    section.set("load_from", config::Node::string(path_.string()));
    tree.set("checkpoint", std::move(section));
  } else {
    tree = config_of_checkpoint();
  }
  if (layer) config::merge(tree, read_layer(*layer));
  set_default(tree, "name", config::Node::string(kComposition));
  // Fields that must be there, for a training that never comes.
  set_default(tree, "optimizer", config::Node::string("adamw"));
  config::Node training = config::Node::map();
  training.set("max_steps", config::Node::integer(1));
  set_default(tree, "training", std::move(training));
  UserConfig user = config_of(std::move(tree), overrides);
  if (!is_hugging_face()) leave_as_it_was(user);
  return user;
}

config::Node TrainedModel::resolved(const UserConfig& user) const {
  const fs::path folder = config_file_ ? config_file_->parent_path() : path_;
  return resolve_config(user, folder.string());
}

config::Node TrainedModel::resolved_for_use(const UserConfig& user) const {
  const fs::path folder = config_file_ ? config_file_->parent_path() : path_;
  return resolve_for_use(user, folder.string());
}

std::optional<fs::path> TrainedModel::tokenizer_folder() const {
  if (is_hugging_face()) {
    return tokenizer_files(path_).empty() ? std::nullopt : std::optional(path_);
  }
  const fs::path folder = present_checkpoints().front() / kAttachmentsFolder;
  return tokenizer_files(folder).empty() ? std::nullopt : std::optional(folder);
}

std::vector<int64_t> TrainedModel::ends_of_text() const {
  if (is_hugging_face()) return {};
  const fs::path file = present_checkpoints().front() / kAttachmentsFolder / kGenerationFile;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  return end_tokens(read_text(file, kLargestAttachment), file.string());
}

std::optional<int64_t> TrainedModel::start_of_text() const {
  const fs::path folder =
      is_hugging_face() ? path_ : present_checkpoints().front() / kAttachmentsFolder;
  for (const char* name : {kGenerationFile, "config.json"}) {
    std::error_code error;
    if (!fs::is_regular_file(folder / name, error)) continue;
    const std::string place = (folder / name).string();
    if (const auto token = start_token(read_text(folder / name, kLargestAttachment), place)) {
      return token;
    }
  }
  return std::nullopt;
}

TrainedModel::Loaded TrainedModel::load(Console& console, const Ranks& ranks,
                                        const TaskModel& model,
                                        const config::Node& resolved) const {
  return is_hugging_face() ? load_folder(console, ranks, model, resolved)
                           : load_checkpoint(console, ranks, model, resolved);
}

TrainedModel::Loaded TrainedModel::load_checkpoint(Console& console, const Ranks& ranks,
                                                   const TaskModel& model,
                                                   const config::Node& resolved) const {
  const AdapterBase base = load_adapter_base(console, ranks, model, resolved);
  const auto fill = [&](const Checkpoint& found) {
    base.require_that_of(found);
    const Checkpoint checkpoint = takes_average_ ? with_averages(found) : found;
    show_on_first_rank(
        console, ranks, "loading " + checkpoint.path.filename().string(),
        [&](ByteProgress& progress) { fill_views(checkpoint, model.views(), progress); });
  };
  std::vector<fs::path> checkpoints;
  on_first_rank(ranks, [&] { checkpoints = present_checkpoints(); });
  LoadedCheckpoint loaded = load_first_good(
      ranks, checkpoints, fill, {.list_again = [this] { return candidates_at(path_); }});
  const Checkpoint& checkpoint = *loaded.checkpoint;
  if (ranks.is_first()) {
    const std::string note = note_of_better(path_, checkpoint.path);
    if (!note.empty()) console.line("note: " + note);
    const std::string other = takes_average_ ? "" : note_of_averages(checkpoint);
    if (!other.empty()) console.line("note: " + other);
  }
  return {.name = fmt::format("{} (step {}{})", checkpoint.path.string(),
                              checkpoint.manifest.state.step, takes_average_ ? ", average" : ""),
          .warnings = std::move(loaded.warnings)};
}

TrainedModel::Loaded TrainedModel::load_folder(Console& console, const Ranks& ranks,
                                               const TaskModel& model,
                                               const config::Node& resolved) const {
  const CheckpointConfig config = checkpoint_config(resolved);
  std::vector<fs::path> sources;
  on_first_rank(ranks, [&] {
    check_first_weights(config, resolved);
    sources = sources_at(path_);
  });
  const auto fill = [&](const Checkpoint& folder) {
    const Checkpoint named = named_as_ours(folder, config, resolved);
    require_task_modules(named, model.views());
    show_on_first_rank(console, ranks, "loading " + path_.string(), [&](ByteProgress& progress) {
      warm_start(named, model.views(), {.strict = true, .prefixes = {}}, &progress);
    });
  };
  LoadedCheckpoint loaded = load_first_good(ranks, sources, fill, {.open = open_source});
  return {.name = path_.string(), .warnings = std::move(loaded.warnings)};
}

}  // namespace phalanx
