// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/fuzz/promise.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

/// What holds for whatever text is read as a config: the fuzz targets' own checks, beside the
/// sanitizers'.
namespace phalanx::config::fuzz {

using phalanx::fuzzing::require;

/// That the mistakes, one by one and as a whole, are text that a terminal shows as it is, and that
/// each has a place that its source has.
void require_clear(const Diagnostics& diagnostics);

/// That a tree as it was read, not resolved yet, has each key once and prints to the same tree.
void require_sound_tree(const Node& tree);

/// Resolves a tree as subject(). Without a mistake the result must survive printing and reading, be
/// JSON, differ in nothing from itself, and fill its structs; otherwise the mistakes must be clear.
void require_resolves_or_explains(const Node& tree, Diagnostics& diagnostics);

}  // namespace phalanx::config::fuzz
