// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

/// "2 tensors, 8 parameters": how many these are, and the numbers in them.
std::string count_text(const std::vector<NamedParameter>& parameters);

}  // namespace phalanx
