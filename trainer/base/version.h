// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx {

/// This program's own version, as checkpoints record it.
inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace phalanx
