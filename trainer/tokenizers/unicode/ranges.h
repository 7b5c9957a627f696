// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

namespace phalanx::unicode {

/// Characters that follow each other: [first, last].
struct Range {
  char32_t first = 0;
  char32_t last = 0;
};

/// Whether a character is in one of these ranges, which are in order.
inline bool is_in(std::span<const Range> ranges, char32_t code) {
  const auto found =
      std::lower_bound(ranges.begin(), ranges.end(), code,
                       [](const Range& range, char32_t c) { return range.last < c; });
  return found != ranges.end() && found->first <= code;
}

}  // namespace phalanx::unicode
