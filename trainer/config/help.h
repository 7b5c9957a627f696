#pragma once

#include <string>

#include "trainer/config/declaration.h"

namespace phalanx::config {

/// Every field by its dotted path with type, range, unit, choices, default and meaning, and every
/// registered class's fields under the section that picks it: the text of `--help` and of the docs.
std::string help(const Declaration& declaration);

}  // namespace phalanx::config
