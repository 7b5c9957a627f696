// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/merge.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace phalanx::config {

namespace {

constexpr const char* kPreset = "preset";

/// A section's short form: the name of a class, also one that is still to be given or filled in.
bool is_name(const Node& node) { return node.is_scalar() && core_type(node) == ScalarType::string; }

/// What a section's class is picked by: a short form itself, or `name`, or `preset`.
const Node* name_in(const Node& section) {
  if (is_name(section)) return &section;
  for (const char* key : {"name", kPreset}) {
    const Node* name = section.find(key);
    if (name != nullptr && name->is_scalar()) return name;
  }
  return nullptr;
}

/// What a later layer names: its preset, which counts before what is set so far, or its class.
const Node* chosen_in(const Node& section) {
  const Node* const preset = section.find(kPreset);
  return preset != nullptr && preset->is_scalar() ? preset : name_in(section);
}

/// Notes in a section, and in all that is set in it, that a later layer names its class or its
/// preset.
void mark(Node& node, const std::shared_ptr<const Renaming>& renaming) {
  node.renamings.push_back(renaming);
  for (Entry& entry : node.entries) mark(entry.value, renaming);
}

void note_renaming(Node& section, const Node& later) {
  const Node* const before = name_in(section);
  const Node* const after = chosen_in(later);
  if (!section.is_map() || after == nullptr) return;
  mark(section, std::make_shared<const Renaming>(
                    Renaming{.before = before == nullptr ? Node() : *before, .after = *after}));
}

/// The same of a preset that is assigned by its key alone.
void note_preset(Node& section, const Node& preset) {
  Node later = Node::map();
  later.set(kPreset, preset);
  note_renaming(section, later);
}

/// Sets a section's name by its short form: the key stands where the value does.
void set_name(Node& section, Node name) {
  const Origin origin = name.origin;
  section.set("name", std::move(name));
  for (Entry& entry : section.entries) {
    if (entry.key == "name") entry.key_origin = origin;
  }
}

void merge_maps(Node& target, Node value) {
  if (target.entries.empty()) {
    target.entries = std::move(value.entries);
    return;
  }
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < target.entries.size(); ++i) places[target.entries[i].key] = i;
  std::vector<Entry> added;
  for (Entry& entry : value.entries) {
    const auto place = places.find(entry.key);
    if (place == places.end()) {
      added.push_back(std::move(entry));
      continue;
    }
    Entry& old = target.entries[place->second];
    const bool replaced = !old.value.is_map() || !entry.value.is_map();
    if (replaced) old.key_origin = entry.key_origin;
    merge(old.value, std::move(entry.value));
  }
  target.entries.insert(target.entries.end(), std::make_move_iterator(added.begin()),
                        std::make_move_iterator(added.end()));
}

}  // namespace

void merge(Node& target, Node value) {
  if (target.is_map() && value.is_blank) return;  // a section in which nothing is written
  if (is_name(target) && value.is_map()) {
    Node name = std::exchange(target, Node::map());
    target.origin = value.origin;
    target.set("name", std::move(name));
  }
  note_renaming(target, value);
  if (target.is_map() && value.is_map()) {
    merge_maps(target, std::move(value));
  } else if (target.is_map() && value.is_scalar() && !value.text.starts_with("${")) {
    set_name(target, std::move(value));
  } else {
    target = std::move(value);
  }
}

void assign(Node& tree, std::string_view path, Node value, Origin path_origin) {
  Node* node = &tree;
  const std::vector<std::string> keys = split_path(path);
  for (const std::string& key : keys) {
    if (key == kPreset && &key == &keys.back()) note_preset(*node, value);
    if (node->is_list()) {
      throw std::logic_error("'" + std::string(path) + "' leads through a list");
    }
    if (node->is_scalar()) {
      Node name = std::exchange(*node, Node::map());
      node->origin = name.origin;
      node->set("name", std::move(name));
    }
    Node* next = node->find(key);
    if (next == nullptr) {
      Node empty;
      empty.origin = path_origin;
      next = &node->set(key, std::move(empty));
    }
    node = next;
    path_origin.column += static_cast<int>(key.size()) + 1;
  }
  merge(*node, std::move(value));
}

}  // namespace phalanx::config
