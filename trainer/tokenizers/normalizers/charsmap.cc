// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/normalizers/charsmap.h"

#include <cstring>
#include <stdexcept>

#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"

namespace phalanx {
namespace {

// A unit of the array: the byte that leads to it, where its children are, whether a text ends here.
uint32_t label_of(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1 << 9)) >> 6); }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & ((uint32_t{1} << 31) - 1); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  uint32_t size = 0;
  if (bytes.size() < sizeof size) throw std::invalid_argument("a charsmap is cut off");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size() || size % sizeof(uint32_t) != 0 || size == 0) {
    throw std::invalid_argument("a charsmap is cut off");
  }
  units_.resize(size / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data(), size);
  texts_ = bytes.substr(size);
  if (well_formed_length(texts_) != texts_.size()) {
    throw std::invalid_argument("a charsmap holds texts that are no UTF-8");
  }
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  size_t place = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    place ^= byte;
    if (byte == 0 || place >= units_.size() || label_of(units_[place]) != byte) return std::nullopt;
    const uint32_t unit = units_[place];
    place ^= offset_of(unit);
    if (!has_value(unit) || place >= units_.size()) continue;
    const size_t begin = value_of(units_[place]);
    if (begin >= texts_.size() || continues_character(texts_[begin])) return std::nullopt;
    return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

}  // namespace phalanx
