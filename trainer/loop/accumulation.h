// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// TrainingConfig::accumulation of a resolved config. An error about a field that somebody wrote
/// names its place: throws ConfigError then, and else UserError.
int64_t accumulation_of(const config::Node& resolved, int64_t world_size);

}  // namespace phalanx
