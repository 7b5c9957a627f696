// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/declaration.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "trainer/base/joined.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/check.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

namespace {

/// A bound as one would write it: 1, 0.5, 1e-08.
std::string bound_text(double bound) {
  std::string text = print_real(bound);
  if (const std::size_t point = text.find(".0"); point != std::string::npos) {
    if (point + 2 == text.size() || text[point + 2] == 'e') text.erase(point, 2);
  }
  return text;
}

std::string singular(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::boolean:
      return "true or false";
    case Type::Kind::integer:
      return "an integer";
    case Type::Kind::real:
      return "a real number";
    case Type::Kind::path:
      return "a path";
    case Type::Kind::duration:
      return "a duration (90s, 5m, 1h30m)";
    case Type::Kind::section:
      return "a section";
    default:
      return "text";
  }
}

std::string plural(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::boolean:
      return "true or false";
    case Type::Kind::integer:
      return "integers";
    case Type::Kind::real:
      return "real numbers";
    case Type::Kind::path:
      return "paths";
    case Type::Kind::duration:
      return "durations (90s, 5m, 1h30m)";
    case Type::Kind::map:
      return "maps";
    case Type::Kind::section:
      return "sections";
    case Type::Kind::list:
      return "lists";
    default:
      return "texts";
  }
}

bool holds_others(Type::Kind kind) { return kind == Type::Kind::list || kind == Type::Kind::map; }

/// " > 0s"; empty without bounds, or for a duration that is only not negative.
std::string bounds_text(const Type& type) {
  const bool is_duration = type.kind == Type::Kind::duration;
  const Range& range = type.range;
  if (is_duration && range.low == 0.0 && !range.low_excluded && !range.high) return "";
  const std::string text = range.text(is_duration ? "s" : "");
  return text.empty() ? text : " " + text;
}

std::string elements_text(const Type& type) {
  const Type& element = type.element.front();
  std::string text = type.kind == Type::Kind::map ? "a map of names to " : "a list of ";
  if (type.size) text += std::to_string(*type.size) + " ";
  text += element.choice             ? element.choice->kind + "s"
          : element.own_text.empty() ? plural(element.kind)
                                     : element.own_text;
  if (holds_others(element.kind)) return text + " (each " + element.text() + ")";
  if (!element.choices.empty()) return text + " out of " + joined(element.choices);
  text += bounds_text(element);
  return element.nullable ? text + " or null" : text;
}

/// "one of FULL_SHARD, NO_SHARD", with their numbers where those may be written.
std::string choices_text(const Type& type) {
  std::vector<std::string> texts = type.choices;
  for (std::size_t i = 0; type.is_numbered && i < texts.size(); ++i) {
    texts[i] += " (" + std::to_string(type.choice_values[i]) + ")";
  }
  return "one of " + joined(texts);
}

std::string value_text(const Type& type) {
  if (holds_others(type.kind)) return elements_text(type);
  if (!type.choices.empty()) return choices_text(type);
  if (!type.own_text.empty()) return type.own_text;
  if (type.choice) return "the name of a " + type.choice->kind + " or a section with its fields";
  return singular(type.kind) + bounds_text(type);
}

/// Whether the word for no value could be taken for a value.
bool null_word_is_a_value(Type type) {
  if (type.null_word.empty()) return false;
  Node word = Node::plain(std::exchange(type.null_word, ""));
  Diagnostics diagnostics;
  check_value(type, word, "", diagnostics);
  return diagnostics.empty();
}

/// The entries of a map that another lacks or has otherwise; of nested maps likewise.
Node difference(const Node& map, const Node& from) {
  Node result = Node::map();
  for (const Entry& entry : map.entries) {
    const Node* other = from.find(entry.key);
    if (other != nullptr && same_value(entry.value, *other)) continue;
    const bool nested = other != nullptr && other->is_map() && entry.value.is_map();
    result.set(entry.key, nested ? difference(entry.value, *other) : entry.value);
  }
  return result;
}

/// Whether a dotted path leads to a field, through sections.
bool is_declared(const Declaration& declaration, std::string_view path) {
  const std::size_t dot = path.find('.');
  const Field* field = declaration.find(path.substr(0, dot));
  if (field == nullptr || dot == std::string_view::npos) return field != nullptr;
  const Declaration* section = field->type.section;
  return section != nullptr && is_declared(*section, path.substr(dot + 1));
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return letter(c) || std::isdigit(static_cast<unsigned char>(c));
         });
}

}  // namespace

bool Range::contains(double value) const {
  if (low && (low_excluded ? value <= *low : value < *low)) return false;
  return !(high && (high_excluded ? value >= *high : value > *high));
}

std::string Range::text(const std::string& unit) const {
  if (low && high) {
    return std::string("in ") + (low_excluded ? "(" : "[") + bound_text(*low) + unit + ", " +
           bound_text(*high) + unit + (high_excluded ? ")" : "]");
  }
  if (low) return (low_excluded ? "> " : ">= ") + bound_text(*low) + (*low == 0 ? "" : unit);
  if (high) return (high_excluded ? "< " : "<= ") + bound_text(*high) + unit;
  return "";
}

Type& Type::leaf() { return element.empty() ? *this : element.front().leaf(); }
const Type& Type::leaf() const { return element.empty() ? *this : element.front().leaf(); }

Node Type::no_value() const { return null_word.empty() ? Node::null() : Node::string(null_word); }

bool Type::is_no_value(const Node& node) const {
  if (node.is_null()) return true;
  const bool text = node.type == ScalarType::plain || node.type == ScalarType::string;
  return !null_word.empty() && node.is_scalar() && text && node.text == null_word;
}

std::string Type::text() const {
  const std::string text = value_text(*this);
  return nullable ? text + ", or " + (null_word.empty() ? "null" : null_word) : text;
}

const Field* Declaration::find(std::string_view field) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(),
                                  [field](const Field& f) { return f.name == field; });
  return found == fields_.end() ? nullptr : &*found;
}

const Preset* Declaration::find_preset(std::string_view preset) const {
  const auto found = std::find_if(presets_.begin(), presets_.end(),
                                  [preset](const Preset& p) { return p.name == preset; });
  return found == presets_.end() ? nullptr : &*found;
}

const Field* Declaration::find_deprecated(std::string_view name) const {
  const auto had_name = [name](const Field& field) {
    const auto& names = field.deprecated_names;
    return std::any_of(names.begin(), names.end(),
                       [name](const DeprecatedName& old) { return old.name == name; });
  };
  const auto found = std::find_if(fields_.begin(), fields_.end(), had_name);
  return found == fields_.end() ? nullptr : &*found;
}

std::vector<std::string> Declaration::field_names() const {
  std::vector<std::string> names;
  for (const Field& field : fields_) names.push_back(field.name);
  return names;
}

Field& Declaration::add_field(Field field) {
  if (!is_identifier(field.name)) {
    throw std::logic_error(name_ + ": '" + field.name + "' is no name for a config field");
  }
  if (field.name == kPreset) {
    throw std::logic_error(name_ + ": 'preset' picks a preset and is no name for a field");
  }
  if (find(field.name) != nullptr) {
    throw std::logic_error(name_ + ": the field '" + field.name + "' is declared twice");
  }
  fields_.push_back(std::move(field));
  return fields_.back();
}

Declaration& Declaration::add_section(std::string name, const Declaration& section,
                                      std::string meaning) {
  Field field;
  field.name = std::move(name);
  field.meaning = std::move(meaning);
  field.type.kind = Type::Kind::section;
  field.type.section = &section;
  add_field(std::move(field));
  return *this;
}

Declaration& Declaration::add_choice(std::string name, Choice choice) {
  Field field;
  field.name = std::move(name);
  field.meaning = choice.meaning;
  field.type.kind = Type::Kind::section;
  field.mandatory = choice.default_name.empty();
  field.type.choice = std::make_shared<const Choice>(std::move(choice));
  add_field(std::move(field));
  return *this;
}

void Declaration::add_preset(std::string name, std::string meaning, PresetStore store) {
  if (find_preset(name) != nullptr) {
    throw std::logic_error(name_ + ": the preset '" + name + "' is declared twice");
  }
  presets_.push_back({std::move(name), std::move(meaning), Node::map()});
  preset_stores_.push_back(std::move(store));
}

void Declaration::finish(const void* object, std::size_t member_count) {
  finish_fields(object, member_count);
  finish_presets();
  for (const Ineffective& rule : ineffective_) {
    for (const std::string& path : rule.fields) {
      if (is_declared(*this, path)) continue;
      throw std::logic_error(name_ + " has no '" + path +
                             "', which is said to have no effect when " + rule.reason);
    }
  }
}

void Declaration::finish_fields(const void* object, std::size_t member_count) {
  if (fields_.size() != member_count) {
    throw std::logic_error(name_ + " has " + std::to_string(member_count) +
                           " members, but describe "
                           "declares " +
                           std::to_string(fields_.size()) + " fields");
  }
  std::set<std::size_t> offsets;
  for (Field& field : fields_) {
    const std::string path = name_ + "." + field.name;
    if (!offsets.insert(field.offset).second) {
      throw std::logic_error(path + " describes a member that has another field already");
    }
    const Type& leaf = field.type.leaf();
    if (leaf.kind == Type::Kind::enumeration && leaf.choices.empty()) {
      throw std::logic_error(path + " is an enum without choices");
    }
    if (leaf.kind == Type::Kind::section && leaf.section == nullptr && !leaf.choice) {
      throw std::logic_error(path + " picks a class, but does not say out of which");
    }
    for (const DeprecatedName& old : field.deprecated_names) {
      if (find(old.name) != nullptr) {
        throw std::logic_error(path + " cannot have had the name '" + old.name +
                               "', which another field has");
      }
    }
    if (null_word_is_a_value(field.type)) {
      throw std::logic_error(path + ": '" + field.type.null_word +
                             "' stands for no value, but is a value too");
    }
    if (field.mandatory) {
      field.default_value = Node::plain("???");
      continue;
    }
    field.default_value = field.store(object, field.type);
    Diagnostics diagnostics;
    check_value(field.type, field.default_value, path, diagnostics);
    if (!diagnostics.empty()) throw std::logic_error("the default of " + diagnostics.text());
  }
}

void Declaration::finish_presets() {
  Node defaults = Node::map();
  for (const Field& field : fields_) defaults.set(field.name, field.default_value);
  for (std::size_t i = 0; i < presets_.size(); ++i) {
    Preset& preset = presets_[i];
    preset.values = difference(preset_stores_[i](*this), defaults);
    for (const Entry& entry : preset.values.entries) {
      Node value = entry.value;
      Diagnostics diagnostics;
      check_value(find(entry.key)->type, value, entry.key, diagnostics);
      if (diagnostics.empty()) continue;
      throw std::logic_error(name_ + ": the preset '" + preset.name + "' sets " +
                             diagnostics.text());
    }
  }
  preset_stores_.clear();
}

Node Declaration::defaults() const {
  Node section = Node::map();
  for (const Field& field : fields_) {
    if (field.mandatory) {
      throw UserError("'" + field.name + "' of " + name_ + " has no default; it must be given");
    }
    section.set(field.name, field.default_value);
  }
  return section;
}

void Declaration::load(void* object, const Node& section) const {
  if (!section.is_map()) {
    throw std::logic_error("config: '" + section.text + "' is read as a section (" + name_ +
                           ") and is none");
  }
  for (const Field& field : fields_) {
    if (!field.load) continue;
    const Node* value = section.find(field.name);
    if (value == nullptr) {
      throw std::logic_error("config: the section read as " + name_ + " lacks '" + field.name +
                             "': it was not resolved");
    }
    if (!value->is_missing()) field.load(object, field.type, *value);
  }
}

Node Declaration::store(const void* object) const {
  Node section = Node::map();
  for (const Field& field : fields_) {
    if (field.store) section.set(field.name, field.store(object, field.type));
  }
  return section;
}

bool Declaration::resume_may_change(std::string_view path, const Node& resolved) const {
  const std::size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  const Field* field = find(name);
  if (field == nullptr) return false;
  if (field->resume_may_change) return true;
  if (dot == std::string_view::npos) return false;
  const Node* value = resolved.find(name);
  if (value == nullptr) return false;
  const Declaration* section = section_of(field->type, *value);
  return section != nullptr && section->resume_may_change(path.substr(dot + 1), *value);
}

const Declaration* section_of(const Type& type, const Node& value) {
  if (!type.choice) return type.section;
  const Node* name = value.find("name");
  return name == nullptr ? nullptr : type.choice->find(name->text);
}

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

}  // namespace phalanx::config
