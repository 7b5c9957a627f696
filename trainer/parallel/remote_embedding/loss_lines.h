// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/api/loss.h"

namespace phalanx::remote_embedding {

/// The names and types of a loss's parts, one a line, for a rank that computes none.
std::string lines_of(const Loss& loss);

/// Losses of 0 of these names and types. Throws std::invalid_argument for lines of another form.
Loss::Parts zeros_of(const std::string& lines);

}  // namespace phalanx::remote_embedding
