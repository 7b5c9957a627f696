// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/hosts.h"

#include "trainer/ranks/collectives/ranks_group.h"

namespace phalanx {

std::span<const int64_t> hosts_of(const Ranks& ranks) { return ranks.group().hosts; }

}  // namespace phalanx
