// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "trainer/step/stopwatch.h"
#include "trainer/step/time_split.h"

namespace phalanx {

/// The wall time of a training.
class TrainingClock {
 public:
  /// From here on time counts as this process's training.
  void begin() { started_ = Stopwatch::Clock::now(); }

  /// The run has taken so many seconds before this process.
  void go_on_from(double elapsed) { before_ = elapsed; }

  /// Seconds of training by now, those before a resume included.
  double elapsed() const { return before_ + since_start(); }

  /// Where the time of this process went by now.
  TimeSplit split() const {
    TimeSplit split = split_;
    split.total = since_start();
    return split;
  }
  /// The sums that passes add to.
  TimeSplit& sums() { return split_; }

 private:
  double since_start() const { return started_ ? Stopwatch::seconds_since(*started_) : 0.0; }

  TimeSplit split_;
  double before_ = 0;
  std::optional<Stopwatch::Clock::time_point> started_;
};

}  // namespace phalanx
