// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/ranks/environment/environment.h"

namespace phalanx {

/// The place of a rank whose program knows it without a launcher, as init_method, rank and
/// world_size of torch.distributed.init_process_group: `tcp://HOST:PORT` is where rank 0 serves the
/// ranks' store, `env://` takes that from MASTER_ADDR and MASTER_PORT, and `file:///PATH` is a file
/// that the ranks share. It must not exist before the run; the last rank that ends in order removes
/// it. Local ranks follow from the hosts of all ranks. For init_from_env. Throws UserError for a
/// rank outside of the world, another method, a wrong port or path, and a variable that is missing.
Environment environment_at(std::string_view init_method, int64_t rank, int64_t world_size);
Environment environment_at(std::string_view init_method, int64_t rank, int64_t world_size,
                           const VariableLookup& lookup);

/// The file in which the ranks of such a place meet; empty where they meet at an address.
std::string store_file(const Environment& environment);

}  // namespace phalanx
