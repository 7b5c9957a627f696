// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace phalanx {

/// How far some work is, in bytes: counted by those who work, looked at by another thread.
struct ByteProgress {
  using Clock = std::chrono::steady_clock;

  std::atomic<uint64_t> all = 0;  ///< 0: not known yet.
  std::atomic<uint64_t> done = 0;
  std::atomic<Clock::time_point> begun = Clock::now();

  /// From the beginning, of so many bytes.
  void begin(uint64_t bytes) {
    done = 0;
    all = bytes;
    begun = Clock::now();
  }

  /// Bytes a second, on average; 0 where that cannot be told yet.
  double rate() const {
    const std::chrono::duration<double> seconds = Clock::now() - begun.load();
    return seconds.count() > 0 ? static_cast<double>(done) / seconds.count() : 0;
  }
};

}  // namespace phalanx
