// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

/// A declared field with all that can be said of it: what help, the reference page, `config
/// explain` and completion show.
struct FieldEntry {
  std::string path;       ///< "optimizer.betas"; "groups[].lr" in a list, "tags.NAME" in a map.
  std::string condition;  ///< "optimizer.name: adamw" for the fields of a registered class.
  std::string type;       ///< "a list of 2 real numbers in [0, 1)"
  std::string unit;
  std::optional<std::string> default_text;  ///< None where a value must be given, or of a section.
  bool mandatory = false;
  bool resume_may_change = false;
  bool is_section = false;
  bool is_map = false;  ///< Of values by free names, which have no entries of their own.
  std::string meaning;
  std::vector<std::string> values;  ///< All, where they are few: enums, classes, true and false.
  std::vector<Preset> presets;      ///< Those of a section or class.
  std::vector<DeprecatedName> deprecated_names;

  /// "an integer >= 0; in steps; default 0; a resume may change it"
  std::string facts() const;
};

/// Every field that a config can have, in the declared order, the fields of every registered class
/// under the section that picks it.
std::vector<FieldEntry> field_entries(const Declaration& declaration);

/// The same as a path of a config sees it: the names of a map and the numbers of elements are those
/// of `path`, and a class that it leads to has its fields there too, although they stand above:
/// "optimizers.critic.lr", "groups[0].lr".
std::vector<FieldEntry> field_entries(const Declaration& declaration, std::string_view path);

/// Whether a path is that of a section, or of what is in it.
bool is_at_or_below(std::string_view path, std::string_view section);

}  // namespace phalanx::config
