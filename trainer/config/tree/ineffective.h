// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// A value that somebody has set: in a file, on the command line, or by naming a preset.
struct SetValue {
  std::string path;
  Origin origin;
};

/// The values at and below `fields` (dotted paths within the section) that are set, and are not the
/// defaults. The section is resolved and stands at `path`.
std::vector<SetValue> set_values(const Declaration& declaration, const Node& section,
                                 const std::string& path, const std::vector<std::string>& fields);

/// The first line of a file with a whole config: its defaults are nobody's choice.
inline constexpr std::string_view kWholeConfig =
    "# A run's whole config, and where each value came from.";

/// Warns of every value that somebody has written and that has no effect beside the section's other
/// values (Declaration::ineffective). `section` is right by itself and stands at `path`. A default
/// counts as well where somebody has chosen it: on the command line, or in a file that does not
/// give all fields of the section, as a config does that was printed.
void warn_of_ineffective(const Declaration& declaration, const Node& section,
                         const std::string& path, Diagnostics& diagnostics);

}  // namespace phalanx::config
