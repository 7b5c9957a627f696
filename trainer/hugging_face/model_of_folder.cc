// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/model_of_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/api/model_base.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/hugging_face/section_of_folder.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "name";
constexpr std::string_view kVocabularySize = "vocab_size";

const Registry<ModelBase>& models() { return Registry<ModelBase>::instance(); }

/// What a folder says: the registered model, and its fields.
struct FolderModel {
  std::string name;
  const HuggingFaceModel& table;
  config::Node fields;
};

FolderModel model_in(const fs::path& folder) {
  const config::Node config = read_hugging_face_config(folder);
  const std::string name = model_of_type(model_type_of(config));
  const HuggingFaceModel& table = hugging_face_model(name);
  config::Node fields = section_of_folder(open_safetensors_model(folder), table, config);
  require_literal(fields, "section");
  return {.name = name, .table = table, .fields = std::move(fields)};
}

/// The class that a section names, by itself or by a preset, and that preset.
struct Chosen {
  std::string name;
  const config::Preset* preset = nullptr;
};

std::optional<Chosen> chosen_by(const std::string& name) {
  if (models().table().contains(name)) return Chosen{.name = name};
  for (const std::string& model : models().table().names()) {
    const config::Preset* preset = models().at(model).declaration()->find_preset(name);
    if (preset != nullptr) return Chosen{.name = model, .preset = preset};
  }
  return std::nullopt;
}

void require_same_name(const FolderModel& there, const std::string& name, const config::Node& value,
                       const fs::path& folder) {
  if (name == there.name) return;
  throw UserError(fmt::format(
      "model.name is '{}' ({}), but '{}' holds a model of '{}': leave model.name out, or name "
      "another folder in checkpoint.load_from",
      name, value.origin.text(), folder.string(), there.name));
}

// As a map: a name alone stands for one.
config::Node& section_of(config::Node& tree) {
  const std::string& key = models().table().kind();
  config::Node* section = tree.find(key);
  if (section == nullptr || section->is_null() || section->is_missing()) {
    return tree.set(key, config::Node::map());
  }
  if (section->is_scalar()) {
    config::Node name = std::exchange(*section, config::Node::map());
    section->origin = name.origin;
    section->set(kName, std::move(name));
  }
  return *section;
}

void take_fields(const FolderModel& there, const config::Preset* preset, config::Node& section) {
  for (const auto& [field, origin, value] : there.fields.entries) {
    const bool is_preset = preset != nullptr && preset->values.find(field) != nullptr;
    if (section.find(field) == nullptr && !is_preset) section.set(field, value);
  }
}

}  // namespace

void take_model_of(const fs::path& folder, config::Node& tree) {
  config::Node& section = section_of(tree);
  if (!section.is_map()) return;  // which resolving reports
  const config::Node* name = section.find(kName);
  if (name == nullptr || name->is_null() || name->is_missing()) {
    const FolderModel there = model_in(folder);
    section.set(kName, config::Node::string(there.name));
    return take_fields(there, nullptr, section);
  }
  if (!name->is_scalar() || config::has_interpolation(*name)) return;
  const auto chosen = chosen_by(name->text);
  if (!chosen || models().at(chosen->name).hugging_face == nullptr) return;
  const FolderModel there = model_in(folder);
  require_same_name(there, chosen->name, *name, folder);
  take_fields(there, chosen->preset, section);
}

void require_model_of(const fs::path& folder, const config::Node& section,
                      bool vocabulary_may_differ) {
  const config::Node& name = *section.find(kName);
  if (models().at(name.text).hugging_face == nullptr) return;
  FolderModel there = model_in(folder);
  require_same_name(there, name.text, name, folder);
  there.fields.set(kName, name);
  const config::Node theirs = resolved_model(std::move(there.fields));
  std::string problems;
  for (const auto& [field, origin, value] : theirs.entries) {
    const auto& free = there.table.free_in_training;
    if (field == kName || std::find(free.begin(), free.end(), field) != free.end()) continue;
    if (field == kVocabularySize && vocabulary_may_differ) continue;
    const config::Node& here = *section.find(field);
    if (config::same_value(here, value)) continue;
    problems +=
        fmt::format("\n  model.{} is {} ({}), and there it is {}", field,
                    config::print_inline(here), here.origin.text(), config::print_inline(value));
  }
  if (problems.empty()) return;
  throw UserError(fmt::format(
      "the model is not the one in '{}':{}\nleave these fields out: checkpoint.load_from "
      "takes them from there, and its weights fit no other sizes{}",
      folder.string(), problems,
      problems.find(".vocab_size is ") == std::string::npos
          ? ""
          : "; another vocab_size needs checkpoint.load_vocabulary=by_token or by_id"));
}

}  // namespace phalanx
