// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace phalanx {

/// Calls functions at their times, on a thread of its own that begins with the first of them. What
/// is left when it ends is called then, early.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  /// Calls `function` at `time`, or at once if that is over. It must not throw.
  void at(Clock::time_point time, std::function<void()> function);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace phalanx
