// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/record.h"

namespace phalanx {

/// A number with 4 significant digits: "2.300", "10.82", "1.000e-05", "nan".
std::string format_number(double value);

/// The same with a unit prefix, for rates: "950.0", "12.35k", "1.200M".
std::string format_rate(double value);

/// "45s", "2m05s", "1h02m", "2d03h".
std::string format_duration(double seconds);

/// One piece of a progress line.
struct Segment {
  std::string text;
  int rank = 0;  ///< 0 stays longest when the line is too narrow.
};

/// Seconds that the rest of the run will take, at the pace so far; nothing while that is unknown.
class RemainingTime {
 public:
  /// `resumed_step` is where this process took over.
  RemainingTime(std::optional<int64_t> max_steps, std::optional<int64_t> resumed_step);

  /// At the end of a validation before the first step: what it took says nothing of the pace.
  void begin_at(const State& state) { start_ = state; }

  /// The estimate at this state; nothing after the last step, when a validation and a save follow.
  std::optional<double> after(const State& state);

 private:
  std::optional<int64_t> max_steps_;
  std::optional<State> start_;
};

/// The pieces for a record, in the order in which they are shown.
std::vector<Segment> progress_segments(const Record& record, std::optional<int64_t> max_steps,
                                       std::optional<double> remaining_seconds);

/// The pieces as one line of at most `width` columns; the least important are left out first.
std::string join_segments(std::vector<Segment> segments, size_t width);

}  // namespace phalanx
