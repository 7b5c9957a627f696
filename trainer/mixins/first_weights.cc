// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/first_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/load/sources.h"
#include "trainer/checkpoint/load/warm_start.h"
#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/hugging_face/folder_files.h"
#include "trainer/hugging_face/model_of_folder.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/hugging_face/our_tensors.h"
#include "trainer/mixins/load_vocabulary.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kField = "checkpoint.load_from";

const config::Node& model_section(const config::Node& resolved) {
  return *chosen_section<ModelBase>(resolved);
}

// Whether it is a file or folder of safetensors that others wrote, or may have written. Our own
// names stay by the tables.
bool may_have_their_names(const fs::path& source) {
  std::error_code unknown;
  return is_safetensors_model(source) && !fs::exists(source / kManifestFile, unknown);
}

// The table of a source's names; nullptr for a checkpoint, and a model that has no such names.
const HuggingFaceModel* table_for(const fs::path& source, const config::Node& resolved) {
  if (!may_have_their_names(source)) return nullptr;
  const auto& entry = Registry<ModelBase>::instance().at(chosen_name<ModelBase>(resolved));
  return entry.hugging_face == nullptr ? nullptr : &entry.hugging_face();
}

// What the user gave, before anything is resolved; nothing if it is no text, or needs what is not
// there.
std::optional<fs::path> given_source(const config::Node& tree) {
  const config::Node* given = tree.find_path(kField);
  if (given == nullptr || !given->is_scalar() || given->is_missing()) return std::nullopt;
  if (!config::has_interpolation(*given)) return given->text;
  config::Node copy = tree;
  config::Node value = *given;
  config::Diagnostics unheard;  // Resolving reports the same.
  const config::KnownValues none;
  const bool is_known = config::Interpolator(copy, unheard, none).resolve_tree(value, kField);
  return is_known && value.is_scalar() ? std::optional<fs::path>(value.text) : std::nullopt;
}

// A file that is all of the model in a folder stands for the folder, which says what the model is.
std::optional<fs::path> folder_of_model_file(const fs::path& source) {
  std::error_code unknown;
  const bool is_model =
      source.filename() == "model.safetensors" || source.filename() == kSafetensorsIndex;
  if (!is_model || !fs::is_regular_file(source, unknown)) return std::nullopt;
  const fs::path folder = source.has_parent_path() ? source.parent_path() : ".";
  return is_hugging_face_folder(folder) ? std::optional(folder) : std::nullopt;
}

void set_source(const fs::path& folder, config::Node& tree) {
  config::Node& section = *tree.find("checkpoint");
  config::Node value = config::Node::string(folder.string());
  value.origin = section.find("load_from")->origin;
  section.set("load_from", std::move(value));
}

bool names_model(const config::Node& tree) {
  const auto is_given = [](const config::Node* node) {
    return node != nullptr && !node->is_null() && !node->is_missing();
  };
  const config::Node* section = tree.find(Registry<ModelBase>::instance().table().kind());
  return is_given(section) && (!section->is_map() || is_given(section->find("name")));
}

const std::string& model_key() { return Registry<ModelBase>::instance().table().kind(); }

// Fields that the config has set stay as they are; `there` names the class.
void take_section(const config::Node& there, config::Node& tree) {
  const std::string& key = model_key();
  config::Node* section = tree.find(key);
  if (section == nullptr || !section->is_map()) section = &tree.set(key, config::Node::map());
  for (const auto& [field, origin, value] : there.entries) {
    const config::Node* given = section->find(field);
    if (given == nullptr || field == "name") section->set(field, value);
  }
}

void require_whole_model(const Manifest& manifest, const fs::path& checkpoint) {
  if (manifest.base.empty()) return;
  throw UserError(fmt::format(
      "'{0}' holds adapters alone: merge them into their model by `trainer checkpoint export {0} "
      "DESTINATION`, and name DESTINATION",
      checkpoint.string()));
}

// The weights are taken of the first that is good.
void require_whole_models(const std::vector<fs::path>& checkpoints) {
  for (const fs::path& checkpoint : checkpoints) {
    try {
      require_whole_model(load_manifest(checkpoint), checkpoint);
    } catch (const CheckpointError&) {
      continue;  // Loading says more.
    }
  }
}

// The section `model` of the config that the newest good checkpoint holds; nothing where it holds
// none. Throws CheckpointError where no checkpoint is good.
std::optional<config::Node> section_of_checkpoints(const std::vector<fs::path>& sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    try {
      const Manifest manifest = load_manifest(sources[i]);
      require_whole_model(manifest, sources[i]);
      const config::Node tree =
          config::parse_json(manifest.config, (sources[i] / kManifestFile).string());
      const config::Node* section = tree.find(model_key());
      if (section == nullptr || !section->is_map()) return std::nullopt;
      require_literal(*section, model_key());
      return *section;
    } catch (const CheckpointError&) {
      if (i + 1 == sources.size()) throw;
    }
  }
  return std::nullopt;
}

// Where the config does not say what the model is, the source has to.
void take_model_of_source(const fs::path& source, config::Node& tree) {
  const std::string place = fmt::format("{} ({})", kField, tree.find_path(kField)->origin.text());
  try {
    const std::vector<fs::path> sources = sources_at(source);
    if (!may_have_their_names(source)) {
      if (const auto section = section_of_checkpoints(sources)) return take_section(*section, tree);
    }
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", place, error.what()));
  } catch (const CheckpointError& error) {
    throw UserError(fmt::format("{}: {}", place, error.what()));
  }
  throw UserError(fmt::format(
      "{}: '{}' does not say what the model is: name {}the model in the section model "
      "(model: {{name: NAME, ...}})",
      place, source.string(),
      may_have_their_names(source) ? "a folder with its config.json beside the weights, or " : ""));
}

// Looks at the first good source: its weights will be taken.
void require_vocabulary(const CheckpointConfig& config, const config::Node& resolved,
                        const std::vector<fs::path>& sources) {
  if (!config.load_vocabulary) return;
  const TaskText text = make_chosen<AnyTask>(resolved)->text();
  for (const fs::path& path : sources) {
    try {
      rows_of_source(config, model_section(resolved),
                     named_as_ours(open_source(path), config, resolved), text.tokenizer.get());
      return;
    } catch (const CheckpointError&) {
      continue;  // Loading says more.
    }
  }
}

// Whatever checkpoint.load_strict says: config.json gives the sizes of all tensors.
void require_same_model(const CheckpointConfig& config, const config::Node& section) {
  const fs::path& source = *config.load_from;
  try {
    require_model_of(source, section, config.load_vocabulary.has_value());
  } catch (const UserError& error) {
    if (config.load_strict) throw;
    throw UserError(fmt::format(
        "{}\nwith checkpoint.load_strict=false, too: it is for tensors that the folder lacks, and "
        "its config.json says what the model is. For a model with other tensors make a checkpoint "
        "of the folder, trainer checkpoint import {} CHECKPOINT, and begin with it: "
        "checkpoint.load_from=CHECKPOINT",
        error.what(), source.string()));
  }
}

// Looks at a folder whose tensors have names of another library.
void require_tensors(const CheckpointConfig& config, const config::Node& resolved,
                     const HuggingFaceModel& table) {
  const fs::path& source = *config.load_from;
  const bool says_model = is_hugging_face_folder(source);
  const bool vocabulary_may_differ = config.load_vocabulary.has_value();
  if (says_model) require_same_model(config, model_section(resolved));
  Checkpoint folder = open_safetensors_model(source);
  rename_tensors(folder.manifest, config.load_prefixes);
  const OurTensors tensors(folder, hugging_face_model_of(table, model_section(resolved)));
  Contents contents = tensors.contents();
  if (vocabulary_may_differ) {
    const VocabularyTensors here = vocabulary_tensors(model_section(resolved));
    contents = with_rows(contents, here.names, here.rows);
  }
  require_start(contents, source, tensors_of_model(model_section(resolved)), config.load_strict);
  tensors.require_equal_copies();
  if (says_model) model_files(source);  // They are read when the run's folder is there.
}

bool has_same_content(const Attachments& files, const Attachment& attachment) {
  return std::any_of(files.begin(), files.end(), [&](const Attachment& file) {
    return file.name == attachment.name && file.content == attachment.content;
  });
}

}  // namespace

void complete_model(config::Node& tree) {
  auto source = given_source(tree);
  if (!source) return;
  if (const auto folder = folder_of_model_file(*source)) {
    set_source(*folder, tree);
    source = folder;
  }
  if (is_hugging_face_folder(*source)) {
    take_model_of(*source, tree);
  } else if (!names_model(tree)) {
    take_model_of_source(*source, tree);
  }
}

void check_first_weights(const CheckpointConfig& config, const config::Node& resolved) {
  const fs::path& source = *config.load_from;
  const std::vector<fs::path> sources = sources_at(source);
  if (!may_have_their_names(source)) require_whole_models(sources);
  if (const HuggingFaceModel* table = table_for(source, resolved)) {
    require_tensors(config, resolved, *table);
  }
  require_vocabulary(config, resolved, sources);
}

Checkpoint named_as_ours(const Checkpoint& source, const CheckpointConfig& config,
                         const config::Node& resolved) {
  Checkpoint named = source;
  rename_tensors(named.manifest, config.load_prefixes);
  if (const HuggingFaceModel* table = table_for(*config.load_from, resolved)) {
    const HuggingFaceModel names = hugging_face_model_of(*table, model_section(resolved));
    static_cast<Contents&>(named.manifest) = OurTensors(named, names).contents();
  }
  return named;
}

Attachments files_of_source(const fs::path& source) {
  if (is_hugging_face_folder(source)) return model_files(source);
  for (const fs::path& path : sources_at(source)) {
    try {
      return read_attachments(open_source(path));
    } catch (const CheckpointError&) {
      continue;  // Its weights were not taken either.
    }
  }
  return {};
}

std::string tokenizer_note(const CheckpointConfig& config,
                           std::span<const Attachment> attachments) {
  const fs::path& source = *config.load_from;
  if (!is_hugging_face_folder(source)) return {};
  const Attachments files = tokenizer_files(source);
  if (files.empty()) return {};
  const bool is_used = !attachments.empty() &&
                       std::all_of(attachments.begin(), attachments.end(),
                                   [&](const auto& each) { return has_same_content(files, each); });
  if (is_used) return {};
  return fmt::format(
      "'{0}' holds a tokenizer, and this run reads its data with {1}: to use it, set "
      "task.data.tokenizer={0} (of text that is tokenized here, the field tokenizer of its source)",
      source.string(), attachments.empty() ? "none of its own" : "another one");
}

}  // namespace phalanx
