// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/api/named_values.h"

namespace phalanx {

/// What was measured of each set of data, a line for each value: "  loss            2.5\n". The
/// numbers of all sets stand in one column, behind the longest name.
std::vector<std::string> value_lines(const std::vector<NamedValues>& sets);

}  // namespace phalanx
