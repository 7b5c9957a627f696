// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

namespace phalanx {

/// Takes the part of a text before the first `mark` off its beginning, and the mark with it; all of
/// a text without one.
inline std::string_view take_until(std::string_view& text, char mark) {
  const std::size_t size = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

}  // namespace phalanx
