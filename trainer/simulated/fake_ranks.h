// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/ranks/ranks.h"
#include "trainer/simulated/collective_log.h"

namespace phalanx {

/// Rank `rank` of a world whose other ranks are not there, for tests of what a rank of a large
/// world asks of the others: collectives are over at once, as if all ranks held this one's values
/// (make_fake_backend), and stand in `log`, those of subgroups too; texts are agreed upon, and the
/// store is this rank's own. Hosts have `local_world_size` ranks each, one after the other. In a
/// world of one there is nothing to log. Throws std::invalid_argument for a rank outside of the
/// world.
Ranks fake_ranks(int64_t rank, int64_t world_size, int64_t local_world_size,
                 std::shared_ptr<CollectiveLog> log);

/// The same of a world whose ranks are on any hosts: a number for that of each.
Ranks fake_ranks(int64_t rank, std::vector<int64_t> hosts, std::shared_ptr<CollectiveLog> log);

}  // namespace phalanx
