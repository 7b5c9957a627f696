// SPDX-License-Identifier: Apache-2.0
// A declaration is complete: it takes its defaults and presets, and checks the description itself.

#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/base/joined.h"
#include "trainer/config/tree/check.h"
#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

namespace {

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

/// Adds to a map the keys that another has; to nested maps likewise.
void add_keys(Node& map, const Node& other) {
  for (const Entry& entry : other.entries) {
    Node* const known = map.find(entry.key);
    if (known != nullptr && known->is_map() && entry.value.is_map()) {
      add_keys(*known, entry.value);
    } else if (known == nullptr) {
      map.set(entry.key, entry.value);
    }
  }
}

/// The values of a map that `wanted` has too.
Node restricted(const Node& map, const Node& wanted) {
  Node result = Node::map();
  for (const Entry& entry : map.entries) {
    const Node* other = wanted.find(entry.key);
    if (other == nullptr) continue;
    const bool nested = other->is_map() && entry.value.is_map();
    result.set(entry.key, nested ? restricted(entry.value, *other) : entry.value);
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

}  // namespace

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
    const std::string declared =
        joined(fields_, ", ", [](const Field& field) { return field.name; });
    throw std::logic_error(name_ + " has " + std::to_string(member_count) +
                           " members, but describe declares " + std::to_string(fields_.size()) +
                           " fields" + (declared.empty() ? "" : ": " + declared));
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

// A preset sets what any preset of its class sets: one that leaves a field at its default stands
// for that value as well.
void Declaration::finish_presets() {
  Node defaults = Node::map();
  for (const Field& field : fields_) defaults.set(field.name, field.default_value);
  std::vector<Node> whole;
  Node set = Node::map();
  for (const PresetStore& store : preset_stores_) {
    whole.push_back(store(*this));
    add_keys(set, difference(whole.back(), defaults));
  }
  for (std::size_t i = 0; i < presets_.size(); ++i) {
    Preset& preset = presets_[i];
    preset.values = restricted(whole[i], set);
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

}  // namespace phalanx::config
