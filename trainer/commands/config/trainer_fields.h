// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/cli/terminal.h"

namespace phalanx {

/// Every field that a config may have, for `trainer train --help`.
std::string fields_of_trainers(const TextStyle& style);

}  // namespace phalanx
