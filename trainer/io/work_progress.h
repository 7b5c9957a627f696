// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace phalanx {

/// How far some work is: counted by those who work, looked at by another thread. Its pieces are
/// bytes (ByteProgress), or are called by what they are (CountProgress).
struct WorkProgress {
  using Clock = std::chrono::steady_clock;

  std::atomic<const char*> unit = nullptr;  ///< "micro-batches"; nullptr: bytes.
  std::atomic<uint64_t> all = 0;            ///< 0: not known yet.
  std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> done_before = 0;  ///< The share of `done` that an earlier start has done.
  std::atomic<Clock::time_point> begun = Clock::now();

  /// From the beginning, of so many pieces; `before` of them are done already.
  void begin(uint64_t pieces, uint64_t before = 0) {
    done_before = before;
    done = before;
    all = pieces;
    begun = Clock::now();
  }

  /// Pieces a second, on average; 0 where that cannot be told yet.
  double rate() const {
    const std::chrono::duration<double> seconds = Clock::now() - begun.load();
    return seconds.count() > 0 ? static_cast<double>(done - done_before) / seconds.count() : 0;
  }
};

}  // namespace phalanx
