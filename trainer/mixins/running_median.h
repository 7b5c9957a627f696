// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace phalanx {

/// The median of the last so many values; nothing before there are as many.
class RunningMedian {
 public:
  /// `window` >= 1.
  explicit RunningMedian(std::size_t window) : window_(window) {}

  /// Takes a value that is finite.
  void add(double value) {
    values_.push_back(value);
    if (values_.size() > window_) values_.pop_front();
  }

  /// The mean of the two in the middle where the number of values is even.
  std::optional<double> median() const {
    if (values_.size() < window_) return std::nullopt;
    std::vector<double> sorted(values_.begin(), values_.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(window_ / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (window_ % 2 == 1) return *middle;
    return (*std::max_element(sorted.begin(), middle) + *middle) / 2;
  }

  /// The values, the oldest first.
  std::vector<double> values() const { return {values_.begin(), values_.end()}; }
  /// Takes over values of a checkpoint, the last ones where there are more than the window holds.
  void restore(std::span<const double> values) {
    values_.clear();
    for (const double value : values) add(value);
  }

 private:
  std::size_t window_;
  std::deque<double> values_;
};

}  // namespace phalanx
