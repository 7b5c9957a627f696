// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
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

/// Warns of every value that somebody has written, that is not the default, and that has no effect
/// beside the section's other values (Declaration::ineffective). `section` is right by itself and
/// stands at `path`. A default never warns, also when it is written out.
void warn_of_ineffective(const Declaration& declaration, const Node& section,
                         const std::string& path, Diagnostics& diagnostics);

}  // namespace phalanx::config
