// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phalanx {

/// Seconds of a time limit as sbatch takes it: "30" minutes, "30:00", "12:00:00", "1-12",
/// "1-12:00", "1-12:00:00". Nothing for a limit that is none ("0", "UNLIMITED"), and for what only
/// sbatch can judge.
std::optional<int64_t> seconds_of_limit(std::string_view limit);

}  // namespace phalanx
