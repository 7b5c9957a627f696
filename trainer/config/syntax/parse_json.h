// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Reads JSON that others wrote, with types: the reverse of to_json. `name` stands in messages
/// where the path of a file would, and is where the values come from. Throws UserError for what is
/// no JSON, a key that appears twice, and values that are nested deeper than kMaxDepth.
Node parse_json(std::string_view text, const std::string& name);

}  // namespace phalanx::config
