// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/declaration.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx::config {

namespace {

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

namespace {

// A dotted path's first field, and what leads on from it: ".lr", "[1].share" or nothing.
std::pair<std::string_view, std::string_view> first_field(std::string_view path) {
  const std::size_t end = std::min(path.find_first_of(".["), path.size());
  return {path.substr(0, end), path.substr(end)};
}

// Goes from a list that holds sections to the element that `rest` begins with ("[1].share").
bool enter_element(const Type*& type, const Node*& value, std::string_view& rest) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), index);
  const auto length = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || length == rest.size() || type->element.empty() ||
      index >= value->items.size()) {
    return false;
  }
  type = &type->element.front();
  value = &value->items[index];
  rest.remove_prefix(length + 1);
  return true;
}

// Goes from a map that holds sections to the one of the key that `rest` begins with (".critic.lr").
bool enter_entry(const Type*& type, const Node*& value, std::string_view& rest) {
  const auto [key, behind] = first_field(rest.substr(1));
  if (behind.empty()) return false;
  type = &type->element.front();
  value = value->find(key);
  rest = behind;
  return true;
}

}  // namespace

bool Declaration::resume_may_change(std::string_view path, const Node& resolved) const {
  auto [name, rest] = first_field(path);
  const Field* field = find(name);
  if (field == nullptr) return false;
  if (field->resume_may_change) return true;
  const Type* type = &field->type;
  const Node* value = resolved.find(name);
  while (value != nullptr && rest.starts_with('[')) {
    if (!enter_element(type, value, rest)) return false;
  }
  if (value != nullptr && type->kind == Type::Kind::map && rest.starts_with('.')) {
    if (!enter_entry(type, value, rest)) return false;
  }
  if (value == nullptr || !rest.starts_with('.')) return false;
  const Declaration* section = section_of(*type, *value);
  return section != nullptr && section->resume_may_change(rest.substr(1), *value);
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
