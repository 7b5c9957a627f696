// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace phalanx::unicode {

/// Bytes of the extended grapheme cluster that begins at text[place] (UAX #29). The text must be
/// well-formed UTF-8.
std::size_t grapheme_length(std::string_view text, std::size_t place);

}  // namespace phalanx::unicode
