// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace phalanx {

/// A line that a signal handler puts together and writes: nothing here takes memory or a lock.
class SignalSafeLine {
 public:
  /// Adds a part; what is too long for the line is left out.
  SignalSafeLine& add(std::string_view part) noexcept;

  /// Writes all of it at once. Leaves errno as it was, and cannot fail: a line that cannot be
  /// written is lost.
  void write(int descriptor) const noexcept;

 private:
  std::array<char, 512> text_{};
  std::size_t size_ = 0;
};

}  // namespace phalanx
