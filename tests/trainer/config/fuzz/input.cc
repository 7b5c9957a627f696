// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/config/fuzz/input.h"

#include <stdlib.h>

namespace phalanx::config::fuzz {

std::string text_of(const std::uint8_t* data, std::size_t size) {
  return std::string(data, data + size);
}

std::vector<std::string> parts_of(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> parts(1);
  for (const char c : text_of(data, size)) {
    if (c == '\0') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void set_environment() {
  static const bool done = [] {
    ::setenv("FUZZ_NUMBER", "7", 1);
    ::setenv("FUZZ_TEXT", "a ${big}: [\"b\", 'c'] # d", 1);
    ::setenv("FUZZ_BYTES", "\xC3(", 1);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace phalanx::config::fuzz
