// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/display_width.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <limits>

#include "trainer/base/utf8.h"

namespace phalanx {
namespace {

/// The code point of a well-formed character of several bytes.
wchar_t code_point(std::string_view character) {
  auto point = static_cast<unsigned char>(character.front()) & (0x7FU >> character.size());
  for (const char c : character.substr(1)) {
    point = point << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return static_cast<wchar_t>(point);
}

std::size_t width_of(std::string_view character) {
  if (character.size() == 1) return 1;
  // The C library has the table, but looks it up in the locale: the program's own is "C", which
  // knows ASCII alone. Where this one is missing every character counts as one column.
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(code_point(character));
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

struct Extent {
  std::size_t bytes = 0;
  std::size_t columns = 0;
};

/// As many of a text's characters as find room.
Extent measure(std::string_view text, std::size_t room) {
  Extent extent;
  while (extent.bytes < text.size()) {
    const std::string_view rest = text.substr(extent.bytes);
    const std::size_t length = std::max<std::size_t>(character_length(rest), 1);
    const std::size_t width = width_of(rest.substr(0, length));
    if (width > room - extent.columns) break;
    extent.bytes += length;
    extent.columns += width;
  }
  return extent;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return measure(text, std::numeric_limits<std::size_t>::max()).columns;
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  return text.substr(0, measure(text, columns).bytes);
}

}  // namespace phalanx
