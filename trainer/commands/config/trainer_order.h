// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The names of all trainers, as pages list them: first the usual one, which has every mixin and
/// is told in full, if the program has it.
std::vector<std::string> ordered_trainers();

}  // namespace phalanx
