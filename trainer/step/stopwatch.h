// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace phalanx {

/// Adds the wall time of its scope, in seconds, to a sum.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Stopwatch(double& sum) : sum_(sum), begin_(Clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { sum_ += seconds_since(begin_); }

  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  double& sum_;
  Clock::time_point begin_;
};

}  // namespace phalanx
