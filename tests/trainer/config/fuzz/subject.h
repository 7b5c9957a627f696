// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config::fuzz {

/// What the fuzz targets read configs as: every type, refinement and kind of section that a
/// declaration knows, under short names, which a fuzzer finds sooner.
const Declaration& subject();

/// Reads a config resolved as subject() into its structs and back. Throws Violation unless the
/// values stay the same.
void require_readable(const Node& resolved);

}  // namespace phalanx::config::fuzz
