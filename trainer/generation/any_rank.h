// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// GenerationHooks::any_rank of these ranks; none for one rank.
std::function<bool(bool writes)> any_rank_of(const Ranks& ranks);

}  // namespace phalanx
