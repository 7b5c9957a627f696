// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// The texts that `text_of` makes of some items, one behind another, with a separator in between.
/// For rooms that do without fmt, whose fmt::join does the same within a format.
template <class Items, class TextOf>
std::string joined(const Items& items, std::string_view separator, const TextOf& text_of) {
  std::string all;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) all += separator;
    is_first = false;
    all += text_of(item);
  }
  return all;
}

/// "a, b, c": texts one behind another.
template <class Texts>
std::string joined(const Texts& texts, std::string_view separator = ", ") {
  return joined(
      texts, separator, [](const auto& text) -> const auto& { return text; });
}

}  // namespace phalanx
