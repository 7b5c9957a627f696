// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx {

/// A short text that one thread sets and every other may read, in a signal handler too: neither
/// waits or takes memory. A longer text is cut.
class SharedText {
 public:
  static constexpr size_t kMostBytes = 128;

  /// A copy, with its size.
  struct Copy {
    std::array<char, kMostBytes> bytes{};
    size_t size = 0;

    std::string_view view() const { return {bytes.data(), size}; }
  };

  /// By one thread at a time.
  void set(std::string_view text) noexcept;

  /// The newest text. Empty where it changes faster than it can be read.
  Copy read() const noexcept;

  std::string text() const { return std::string(read().view()); }

 private:
  // The newest text is in slot `versions_ % 2`; the next one is written into the other. Only a
  // reader that is overtaken twice sees a mixture, and the number tells it so (a seqlock).
  struct Slot {
    std::array<std::atomic<uint64_t>, kMostBytes / sizeof(uint64_t)> words{};
    std::atomic<size_t> size = 0;
  };

  std::array<Slot, 2> slots_;
  std::atomic<uint64_t> versions_ = 0;
};

}  // namespace phalanx
