// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Tells the other ranks, once they have waited for a while, that rank 0 is still at its work.
using StillAtIt = std::function<void()>;

/// on_first_rank for what may take longer than the others wait (Ranks::timeout). `action` calls
/// what it is given between its parts, each of which takes less than half of that: where it does
/// not any more, the others fail.
void on_first_rank_at_length(const Ranks& ranks,
                             const std::function<void(const StillAtIt& still_at_it)>& action);

}  // namespace phalanx
