#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "trainer/core/ranks.h"

namespace phalanx {

/// What an action costs this rank, which begins it when all have come: `seconds` of wall time until
/// it has ended here, `cpu_seconds` of all threads, `extra_mib` of resident memory at its peak
/// above what there was before.
nlohmann::json measure_cost(const Ranks& ranks, const std::function<void()>& action);

/// Takes so much memory from the system and gives it back. A virtual machine may have to ask its
/// host for memory that it has not used for a while, which takes longer than to write it to a disk:
/// what is measured next finds some that is there.
void settle_memory(uint64_t bytes);

}  // namespace phalanx
