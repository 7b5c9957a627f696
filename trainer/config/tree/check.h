// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Checks a value and gives it its declared type and canonical text: what is wrong, by the path of
/// the element that is, goes to `diagnostics`. Sections within are left to check_section.
void check_value(const Type& type, Node& value, const std::string& path, Diagnostics& diagnostics);

/// How an error message calls what stands at a node: "'abc'", "a list", "null".
std::string describe_value(const Node& node);

}  // namespace phalanx::config
