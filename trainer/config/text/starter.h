// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// A file to begin with: every field that the filled tree has, with its meaning. What somebody has
/// given stands as it is, what must still be given as `???`, and every other field commented out
/// with its default.
std::string starter(const Declaration& declaration, const Node& filled);

}  // namespace phalanx::config
