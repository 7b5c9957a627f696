// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace phalanx {

/// Text of bounded size, put together without memory of the heap, as handlers of signals must. What
/// does not fit is left out.
template <std::size_t capacity>
class BoundedText {
 public:
  BoundedText& operator<<(std::string_view text) {
    const std::size_t count = std::min(text.size(), capacity - size_);
    std::memcpy(bytes_.data() + size_, text.data(), count);
    size_ += count;
    return *this;
  }
  BoundedText& operator<<(int64_t number) {
    std::array<char, 20> digits{};
    const char* const end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, capacity> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace phalanx
