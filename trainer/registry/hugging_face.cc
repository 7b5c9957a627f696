// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/hugging_face.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx {
namespace {

using config::Node;

Node from_text(const std::string& json) { return config::parse_json(json, "a constant"); }

/// What the `*` of a pattern stands for in a name, "" where it has none; nothing where it does not
/// fit.
std::optional<std::string> fitted(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == name ? std::optional<std::string>("") : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, star);
  const std::string_view behind = pattern.substr(star + 1);
  if (name.size() <= before.size() + behind.size()) return std::nullopt;
  if (!name.starts_with(before) || !name.ends_with(behind)) return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - behind.size()));
}

std::string filled(std::string pattern, const std::string& text) {
  const std::size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.replace(star, 1, text);
}

std::optional<std::string> translated(const std::vector<HuggingFaceName>& names,
                                      std::string HuggingFaceName::*from,
                                      std::string HuggingFaceName::*to, std::string_view name) {
  for (const HuggingFaceName& row : names) {
    if (const auto text = fitted(row.*from, name)) return filled(row.*to, *text);
  }
  return std::nullopt;
}

bool is_ignored(const HuggingFaceModel& model, std::string_view theirs) {
  return std::any_of(model.ignored.begin(), model.ignored.end(),
                     [&](const auto& pattern) { return fitted(pattern, theirs).has_value(); });
}

// What is wrong with a constant's value, or nothing.
std::optional<std::string> problem_with(const HuggingFaceConstant& constant, const Node& config) {
  const Node* value = config.find(constant.key);
  if (value == nullptr || constant.import_takes_any) return std::nullopt;
  const std::string text = config::to_json(*value);
  const auto is_it = [&](const std::string& json) {
    return config::to_json(from_text(json)) == text;
  };
  if (is_it(constant.value) ||
      std::any_of(constant.synonyms.begin(), constant.synonyms.end(), is_it)) {
    return std::nullopt;
  }
  return constant.key + " is " + text + ", and here it is " + constant.value;
}

// A model of a billion layers would take all memory before a tensor is missed.
std::optional<std::string> problem_with(const HuggingFaceField& field, const Node* value,
                                        std::size_t tensors) {
  if (!field.counts_layers || value == nullptr || !value->is_scalar()) return std::nullopt;
  const auto layers = config::parse_integer(value->text).value;
  if (!layers || *layers <= static_cast<int64_t>(tensors)) return std::nullopt;
  return field.theirs + " is " + value->text + ", and the files beside it hold " +
         std::to_string(tensors) + " tensors";
}

// The value of a field there, or nullptr.
const Node* value_of(const HuggingFaceField& field, const Node& config) {
  const Node* value = config.find(field.theirs);
  return value != nullptr || field.alias.empty() ? value : config.find(field.alias);
}

}  // namespace

Node hugging_face_config(const HuggingFaceModel& model, const Node& section) {
  Node config = Node::map();
  config.set("architectures", Node::list({Node::string(model.architecture)}));
  config.set("model_type", Node::string(model.model_type));
  for (const HuggingFaceField& field : model.fields) {
    const Node* value = section.find(field.ours);
    if (value == nullptr) {
      throw std::logic_error("the table of model_type " + model.model_type + " names the field '" +
                             field.ours + "', which the model's config lacks");
    }
    config.set(field.theirs, *value);
  }
  for (const HuggingFaceConstant& constant : model.constants) {
    config.set(constant.key, from_text(constant.value));
  }
  if (model.complete_config != nullptr) model.complete_config(section, config);
  return config;
}

Node section_of_hugging_face(const HuggingFaceModel& model, const Node& config,
                             std::size_t tensors) {
  std::string problems;
  const auto note = [&](const std::optional<std::string>& problem) {
    if (problem) problems += "\n  " + *problem;
  };
  for (const HuggingFaceConstant& constant : model.constants) note(problem_with(constant, config));
  for (const HuggingFaceField& field : model.fields) {
    note(problem_with(field, value_of(field, config), tensors));
  }
  Node section = Node::map();
  for (const HuggingFaceField& field : model.fields) {
    if (const Node* value = value_of(field, config)) section.set(field.ours, *value);
  }
  if (model.complete_section != nullptr) {
    for (const std::string& problem : model.complete_section(config, section)) note(problem);
  }
  if (!problems.empty()) {
    throw UserError("'" + config.origin.text() +
                    "' does not describe a model that there is here:" + problems);
  }
  return section;
}

HuggingFaceModel hugging_face_model_of(HuggingFaceModel model, const Node& section) {
  std::erase_if(model.tied, [&](const HuggingFaceName& row) {
    const Node* value = row.only_if.empty() ? nullptr : section.find(row.only_if);
    return value != nullptr && config::to_json(*value) == "false";
  });
  return model;
}

std::string hugging_face_name(const HuggingFaceModel& model, std::string_view ours) {
  const auto theirs =
      translated(model.names, &HuggingFaceName::ours, &HuggingFaceName::theirs, ours);
  if (theirs) return *theirs;
  throw std::logic_error("the table of model_type " + model.model_type +
                         " has no name for the tensor '" + std::string(ours) + "'");
}

std::optional<OurTensor> our_tensor(const HuggingFaceModel& model, std::string_view theirs) {
  for (const std::string& name : {std::string(theirs), model.base_prefix + std::string(theirs)}) {
    if (is_ignored(model, name)) return std::nullopt;
    const auto of = [&](const std::vector<HuggingFaceName>& names) {
      return translated(names, &HuggingFaceName::theirs, &HuggingFaceName::ours, name);
    };
    if (const auto ours = of(model.tied)) return OurTensor{.name = *ours, .is_tied = true};
    if (const auto ours = of(model.names)) return OurTensor{.name = *ours};
  }
  return OurTensor{.name = std::string(theirs)};
}

}  // namespace phalanx
