// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// A field of a model's config, and the key of Hugging Face's config.json that holds the same
/// value. Where the key is not there the field keeps its default, which is also Hugging Face's.
struct HuggingFaceField {
  std::string ours;
  std::string theirs;
  std::string alias = {};  ///< Another key for it, which their programs take too.
  /// A number of layers, each of which has tensors of its own: no file has more.
  bool counts_layers = false;
};

/// What a model does in one way only: a key of config.json for which its config has no field.
struct HuggingFaceConstant {
  std::string key;
  std::string value;  ///< As JSON: what an export says, and what it means where the key is absent.
  std::vector<std::string> synonyms = {};  ///< As JSON: other values that mean the same.
  bool import_takes_any = false;           ///< It does not change what the model computes.
};

/// Names of tensors here and there. One `*` stands for one or more characters, the same on both
/// sides.
struct HuggingFaceName {
  std::string ours;
  std::string theirs;
  /// Among those that are tied: a field of ours, true where it holds; "": always.
  std::string only_if = {};
};

/// What a model is in a folder of Hugging Face's libraries: one table, by which export and import
/// go. A model has it as `static const HuggingFaceModel& hugging_face()`.
struct HuggingFaceModel {
  std::string model_type;    ///< config.json's.
  std::string architecture;  ///< The class there that computes the same.
  std::vector<HuggingFaceField> fields;
  std::vector<HuggingFaceConstant> constants;
  std::vector<HuggingFaceName> names;  ///< The first that fits counts; ours all fit one.
  /// What their names begin with, and lack in a file of the model without its head.
  std::string base_prefix;
  /// Tensors of theirs that are one of ours a second time; files may hold them, or them alone.
  std::vector<HuggingFaceName> tied;
  std::vector<std::string> ignored;  ///< Tensors of theirs, as patterns, that are no weights.
  /// Fields of ours that a training may choose whatever the folder says: dropout, the spread of
  /// initial values.
  std::vector<std::string> free_in_training = {};
  /// What fields and constants cannot say; none: nothing. The first adds to the config.json of a
  /// section. The second adds to the section of a config.json, and returns what is wrong with that,
  /// a line each.
  void (*complete_config)(const config::Node& section, config::Node& config) = nullptr;
  std::vector<std::string> (*complete_section)(const config::Node& config,
                                               config::Node& section) = nullptr;
  /// Further values of model_type, of models that differ in what `complete_section` adds.
  std::vector<std::string> other_model_types = {};
};

/// config.json of the model that a resolved section describes.
config::Node hugging_face_config(const HuggingFaceModel& model, const config::Node& section);

/// The reverse: the section's fields that config.json gives, not resolved; `tensors` are in the
/// files beside it. Throws UserError naming every key that asks for what this model does not do.
config::Node section_of_hugging_face(const HuggingFaceModel& model, const config::Node& config,
                                     std::size_t tensors);

/// The table for the model that a section describes: of what is tied, `only_if` has left what
/// holds. A field that is not there is taken to be true.
HuggingFaceModel hugging_face_model_of(HuggingFaceModel model, const config::Node& section);

/// The name of our tensor there. Throws std::logic_error where the table has none.
std::string hugging_face_name(const HuggingFaceModel& model, std::string_view ours);

/// What a tensor of theirs is here.
struct OurTensor {
  std::string name;
  bool is_tied = false;  ///< It is there a second time, as a rule under its own name, too.
};

/// The reverse of hugging_face_name: nothing for what is to be ignored, the name itself where the
/// table has none.
std::optional<OurTensor> our_tensor(const HuggingFaceModel& model, std::string_view theirs);

}  // namespace phalanx
