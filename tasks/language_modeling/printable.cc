#include "tasks/language_modeling/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace phalanx {
namespace {

// Length of the well-formed UTF-8 sequence of more than one byte that `bytes` begins with and a
// terminal prints as text, or 0.
size_t utf8_length(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const size_t length = first < 0xC0   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF8 ? 4
                                       : 0;
  if (length == 0 || bytes.size() < length) return 0;
  uint32_t point = first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(bytes[i]);
    if ((next & 0xC0U) != 0x80U) return 0;
    point = point << 6U | (next & 0x3FU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0xA0, 0x800, 0x10000};  // 0x80 to 0x9F are controls.
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point < kSmallest[length] || point > 0x10FFFF || surrogate ? 0 : length;
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const char byte = bytes[i];
    if (const size_t length = utf8_length(bytes.substr(i)); length > 0) {
      text += bytes.substr(i, length);
      i += length;
      continue;
    }
    if (byte == '\\') {
      text += "\\\\";
    } else if (byte == '\n' || (byte >= 0x20 && byte < 0x7F)) {
      text += byte;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(byte));
    }
    ++i;
  }
  return text;
}

}  // namespace phalanx
