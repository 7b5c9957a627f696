// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// A number for the host of each rank of a group: ranks with the same number share one. Valid while
/// the group is.
std::span<const int64_t> hosts_of(const Ranks& ranks);

}  // namespace phalanx
