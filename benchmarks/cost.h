#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "trainer/core/ranks.h"

namespace phalanx {

/// What an action costs this rank, which begins it when all have come: `seconds` of wall time until
/// it has ended here, `cpu_seconds` of all threads, `extra_mib` of resident memory at its peak
/// above what there was before.
nlohmann::json measure_cost(const Ranks& ranks, const std::function<void()>& action);

}  // namespace phalanx
