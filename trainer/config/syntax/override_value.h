// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Reads what stands behind the `=` of an override, from byte `start` on, as Hydra does: plain text
/// (`1e-4`, `a value`), quoted text, `[lists]` and `{key: value}` maps of these, nested. In plain
/// text a backslash takes the meaning from `, = : ( ) [ ] { }`, blanks and itself; `${...}` may
/// hold anything. docs/overrides.md says where the two part. Mistakes go to `diagnostics`.
std::optional<Node> parse_override_value(const std::shared_ptr<const Source>& source,
                                         std::size_t start, Diagnostics& diagnostics);

}  // namespace phalanx::config
