// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/nearest.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/override_key.h"
#include "trainer/config/syntax/override_value.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/source_text.h"

namespace phalanx::config {

namespace {

using SourcePointer = std::shared_ptr<const Source>;
using Steps = std::span<const KeyStep>;
using Defect = std::optional<TextDefect>;

Defect check_text(std::string_view text) {
  if (Defect defect = find_text_defect(text)) return defect;
  const std::size_t control = text.find_first_of("\n\t");
  if (control == std::string_view::npos) return std::nullopt;
  return TextDefect{control, "an override is one line without tabs; put such a text into a file"};
}

/// The element of `list` that the last step names. Throws TextDefect if it is not there.
Node& element_at(Node* list, Steps steps) {
  const KeyStep& step = steps.back();
  const std::string path = path_of(steps.first(steps.size() - 1));
  if (list == nullptr || list->is_null()) {
    throw TextDefect{step.position, "'" + path +
                                        "' is not written in the config, so it has no element to "
                                        "set; set the whole list: " +
                                        path + "=[...]"};
  }
  if (!list->is_list()) throw TextDefect{step.position, "'" + path + "' is no list here"};
  if (*step.index >= list->items.size()) {
    throw TextDefect{step.position, "'" + path + "' has " + std::to_string(list->items.size()) +
                                        " elements, numbered from 0"};
  }
  return list->items[*step.index];
}

/// What the steps lead to, or nullptr. Throws TextDefect where a list is entered by a name, or an
/// element is not there.
Node* find_steps(Node& tree, Steps steps) {
  Node* node = &tree;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].index) {
      node = &element_at(node, steps.first(i + 1));
    } else if (node != nullptr) {
      if (node->is_list()) {
        const std::string path = path_of(steps.first(i));
        throw TextDefect{0, "'" + path + "' is a list here; set it as a whole, or an element: " +
                                path + "[0]=..."};
      }
      node = node->find(steps[i].name);
    }
  }
  return node;
}

void set_value(Node& tree, Steps steps, Node value, const Origin& key_origin) {
  // The names behind the last element, which `assign` merges into it.
  std::size_t names = steps.size();
  while (names > 0 && !steps[names - 1].index) --names;
  find_steps(tree, steps);  // refuses what cannot be entered
  Node* root = find_steps(tree, steps.first(names));
  const std::string path = path_of(steps.subspan(names));
  if (path.empty()) {
    merge(*root, std::move(value));
  } else {
    assign(*root, path, std::move(value), key_origin);
  }
}

void refuse_if_written(Node& tree, Steps steps, const Node& value) {
  const Node* there = find_steps(tree, steps);
  if (there == nullptr || there->is_missing() || there->is_null()) return;
  if (there->is_map() && value.is_map()) return;  // adds to it
  const std::string path = path_of(steps);
  throw TextDefect{0, "'" + path + "' is set already (" + there->origin.text() +
                          "), and + only adds; write " + path + "=... or ++" + path + "=..."};
}

/// "; did you mean 'a.b'?" where nothing stands at the steps, but something at nearly the same.
std::string near_key(Node& tree, Steps steps) {
  std::size_t known = 0;
  while (find_steps(tree, steps.first(known + 1)) != nullptr) ++known;
  std::vector<std::string> keys;
  for (const Entry& entry : find_steps(tree, steps.first(known))->entries) {
    keys.push_back(entry.key);
  }
  const std::optional<std::string> near = nearest(steps[known].name, keys);
  if (!near) return "";
  std::vector<KeyStep> meant(steps.begin(), steps.end());
  meant[known].name = *near;
  return "; did you mean '" + path_of(meant) + "'?";
}

/// same_value, whatever the order of a map's keys.
bool same_content(const Node& a, const Node& b) {
  if (a.is_list() && b.is_list()) {
    return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_content);
  }
  if (!a.is_map() || !b.is_map()) return same_value(a, b);
  return a.entries.size() == b.entries.size() &&
         std::all_of(a.entries.begin(), a.entries.end(), [&](const Entry& entry) {
           const Node* other = b.find(entry.key);
           return other != nullptr && same_content(entry.value, *other);
         });
}

void remove_value(Node& tree, const OverrideKey& key, const std::optional<Node>& expected) {
  const Steps steps = key.steps;
  const std::string path = path_of(steps);
  if (steps.back().index) {
    throw TextDefect{0, "an element cannot be taken out of a list; set the whole list"};
  }
  const Node* there = find_steps(tree, steps);
  if (there == nullptr) {
    throw TextDefect{0, "'" + path +
                            "' is not set by a file or an earlier override: there is nothing "
                            "to remove" +
                            near_key(tree, steps)};
  }
  if (expected && !same_content(*there, *expected)) {
    throw TextDefect{*key.value, "'" + path + "' has another value here (" + there->origin.text() +
                                     "), so it stays; ~" + path + " removes it whatever it is"};
  }
  Node* section = find_steps(tree, steps.first(steps.size() - 1));
  std::erase_if(section->entries,
                [&](const Entry& entry) { return entry.key == steps.back().name; });
}

void refuse_include(Steps steps) {
  if (steps.size() != 1 || steps.front().name != "include") return;
  throw TextDefect{steps.front().position,
                   "include stands in a file; on the command line lay files over each other, from "
                   "left to right: trainer base.yaml other.yaml key=value"};
}

void apply(Node& tree, const SourcePointer& source, Diagnostics& diagnostics) {
  const OverrideKey key = parse_override_key(source->text);
  refuse_include(key.steps);
  std::optional<Node> value;
  if (key.value) {
    value = parse_override_value(source, *key.value, diagnostics);
    if (!value) return;
  }
  if (key.action == OverrideAction::remove) return remove_value(tree, key, value);
  if (key.action == OverrideAction::add) refuse_if_written(tree, key.steps, *value);
  set_value(tree, key.steps, std::move(*value), origin_at(source, key.steps.front().position));
}

}  // namespace

void apply_override(Node& tree, std::string argument, Diagnostics& diagnostics) {
  const auto source = std::make_shared<const Source>(
      Source{Source::Kind::command_line, "command line", std::move(argument)});
  const auto report = [&](std::size_t position, std::string message) {
    diagnostics.add(origin_at(source, position), "", std::move(message));
  };
  if (source->text.size() > kMaxConfigBytes) return report(0, "the argument is larger than 1 MiB");
  if (const Defect defect = check_text(source->text)) {
    return report(defect->position, defect->message);
  }
  try {
    apply(tree, source, diagnostics);
  } catch (const TextDefect& defect) {
    report(defect.position, defect.message);
  }
}

bool is_forced(std::string_view argument, std::string_view path) {
  if (!argument.starts_with("++")) return false;
  argument.remove_prefix(2);
  std::string_view key = argument.substr(0, argument.find_first_of("=["));
  const std::string_view value = argument.substr(std::min(key.size() + 1, argument.size()));
  const std::size_t first = value.find_first_not_of(' ');
  // A map's fields are to be named one by one.
  const bool is_map = argument.substr(key.size()).starts_with('=') &&
                      first != std::string_view::npos && value[first] == '{';
  if (path == key) return true;
  // With the places in lists that it names.
  key = argument.substr(0, argument.find('='));
  if (path == key) return true;
  // Another class brings other fields.
  if (key.ends_with(".name")) key.remove_suffix(std::string_view(".name").size());
  if (is_map || !path.starts_with(key) || path.size() == key.size()) return false;
  return path[key.size()] == '.' || path[key.size()] == '[';
}

}  // namespace phalanx::config
