// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx {

/// GPT-2's pattern, for files that name none (encoder.py).
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace phalanx
