// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/replaced.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/base/joined.h"
#include "trainer/config/tree/class_names.h"

namespace phalanx::config {

namespace {

/// Removes the values of a section that stood in it before a renaming; the paths and places of
/// those that somebody has written go to `dropped`. Whether nothing is left.
bool remove_marked(Node& section, const std::shared_ptr<const Renaming>& renaming,
                   const std::string& path, std::vector<std::string>& dropped) {
  std::erase_if(section.entries, [&](Entry& entry) {
    const std::string inner = join_path(path, entry.key);
    if (entry.value.is_map() && !entry.value.entries.empty()) {
      return remove_marked(entry.value, renaming, inner, dropped);
    }
    const auto& marks = entry.value.renamings;
    if (std::find(marks.begin(), marks.end(), renaming) == marks.end()) return false;
    const bool is_name = path.empty() && (entry.key == kName || entry.key == kPreset);
    if (!is_name && entry.value.origin.is_written()) {
      dropped.push_back(inner + " (" + entry.value.origin.text() + ")");
    }
    return true;
  });
  return section.entries.empty();
}

/// The same for a preset of this name, of the fields that `values` has.
void remove_set_before(Node& section, const Node& values, const std::string& name,
                       const std::string& path, std::vector<std::string>& dropped) {
  std::erase_if(section.entries, [&](Entry& entry) {
    const Node* const value = values.find(entry.key);
    if (value == nullptr) return false;
    const std::string inner = join_path(path, entry.key);
    if (entry.value.is_map() && value->is_map()) {
      remove_set_before(entry.value, *value, name, inner, dropped);
      return false;
    }
    const auto& marks = entry.value.renamings;
    const bool is_marked = std::any_of(marks.begin(), marks.end(),
                                       [&](const auto& mark) { return mark->after.text == name; });
    if (is_marked && entry.value.origin.is_written() && !same_value(entry.value, *value)) {
      dropped.push_back(inner + " (" + entry.value.origin.text() + ")");
    }
    return is_marked;
  });
}

/// The class that a name, which may be that of a preset or an interpolation, stands for; empty for
/// none.
std::string class_named(const Choice& choice, Node name, const Node& tree,
                        const KnownValues& known) {
  if (has_interpolation(name)) {
    Node root = tree;
    Diagnostics unused;  // of a name that was replaced
    if (!Interpolator(root, unused, known).resolve_tree(name, "")) return "";
  }
  if (!name.is_scalar()) return "";
  return choice.find(name.text) != nullptr ? name.text : class_of_preset(choice, name.text);
}

}  // namespace

void drop_replaced(const Choice& choice, Node& section, const std::string& path, const Node& tree,
                   const KnownValues& known, Diagnostics& diagnostics) {
  for (const auto& renaming : std::exchange(section.renamings, {})) {
    const std::string before = class_named(choice, renaming->before, tree, known);
    const std::string after = class_named(choice, renaming->after, tree, known);
    if (before.empty() || after.empty() || before == after) continue;
    std::vector<std::string> dropped;
    remove_marked(section, renaming, "", dropped);
    if (dropped.empty()) continue;
    diagnostics.warn(renaming->after.origin, path,
                     choice.kind + " '" + after + "' replaces '" + before +
                         "' with all its fields; dropped: " + joined(dropped));
  }
}

void drop_fields_of_preset(const Preset& preset, const Node& name, Node& section,
                           const std::string& path, Diagnostics& diagnostics) {
  std::vector<std::string> dropped;
  remove_set_before(section, preset.values, name.text, "", dropped);
  if (dropped.empty()) return;
  diagnostics.warn(name.origin, path,
                   "the preset '" + preset.name +
                       "' replaces what was set before it; dropped: " + joined(dropped));
}

}  // namespace phalanx::config
