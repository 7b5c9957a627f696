// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace phalanx {

/// The columns of a terminal that a line of UTF-8 text takes: two for a wide character (of Chinese,
/// Japanese or Korean, most emoji), none for one that is drawn over the one before it (a combining
/// accent), else one. A control character, and each byte that is no UTF-8, counts as the one
/// character that single_line() puts in its place.
std::size_t display_width(std::string_view text);

/// The longest beginning of a line that takes at most so many columns, in whole characters.
std::string_view first_columns(std::string_view text, std::size_t columns);

}  // namespace phalanx
