// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::config {

/// What an override does to its key.
enum class OverrideAction {
  set,     ///< key=value
  add,     ///< +key=value: only where nothing is written yet
  force,   ///< ++key=value
  remove,  ///< ~key, ~key=value: back to the default
};

/// One part of a key: a name, or the number of an element of the list that the name before it
/// holds.
struct KeyStep {
  std::string name;
  std::optional<std::size_t> index;
  std::size_t position = 0;  ///< Byte in the argument.
};

/// An override up to its value.
struct OverrideKey {
  OverrideAction action = OverrideAction::set;
  std::vector<KeyStep> steps;        ///< At least one; the first is a name.
  std::optional<std::size_t> value;  ///< The byte where it begins; none behind a `~key`.
};

/// Reads `+a.b[2].c=` from the beginning of an argument. Throws TextDefect.
OverrideKey parse_override_key(std::string_view argument);

/// "a.b[2].c".
std::string path_of(std::span<const KeyStep> steps);

}  // namespace phalanx::config
