// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Warns of every value that somebody has written, that is not the default, and that has no effect
/// beside the section's other values (Declaration::ineffective). `section` is right by itself and
/// stands at `path`. A default never warns, also when it is written out.
void warn_of_ineffective(const Declaration& declaration, const Node& section,
                         const std::string& path, Diagnostics& diagnostics);

}  // namespace phalanx::config
