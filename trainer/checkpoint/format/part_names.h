// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "trainer/api/stateful.h"

namespace phalanx {

/// Throws std::logic_error for a part whose name begins no file's, or is that of another part.
void require_part_names(std::span<const StatePart> parts);

}  // namespace phalanx
