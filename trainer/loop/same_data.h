// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Throws UserError on all ranks if their data for an evaluation or predictions differs. That of a
/// training is compared where its model is wrapped.
void require_same_data(const Ranks& ranks, const std::string& fingerprint);

}  // namespace phalanx
