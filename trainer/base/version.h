#pragma once

#include <string_view>

namespace phalanx {

/// This program's own version, as checkpoints record it.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace phalanx
