// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>

#include "trainer/ranks/ranks.h"

namespace c10d {
class Store;
}

namespace phalanx {

/// Ranks that meet in a c10d store of your own, on this host, with Gloo between them; Python's may
/// be among them: `dist.ProcessGroupGloo(dist.PrefixStore("world/group", store), rank, world_size,
/// timeout)`, on the interface `lo`. Each operation is then c10d's own, which Python's of that name
/// meets. Returns once all have connected; throws CommunicationError after `timeout`, which is also
/// that of each operation. Close them at the end (Ranks::close).
Ranks ranks_of_store(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size,
                     std::chrono::milliseconds timeout);

}  // namespace phalanx
