// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace phalanx {

/// Puts samples of similar length side by side, so that a batch needs little padding: of each
/// `window` places of an order, the longest sample comes first (transformers'
/// LengthGroupedSampler). So the order stays a pure function of what it was, at any world size.
class LengthWindows {
 public:
  /// The sample at a place of the order, and the length of a sample.
  using SampleAt = std::function<int64_t(int64_t place)>;
  using LengthOf = std::function<int64_t(int64_t sample)>;

  /// `size` places in all, the last window may be short.
  LengthWindows(int64_t size, int64_t window, SampleAt sample_at, LengthOf length_of);

  /// The samples at these places. Thread-safe, if its functions are.
  std::vector<int64_t> samples_at(std::span<const int64_t> places) const;

 private:
  std::vector<int64_t> sorted_window(int64_t number) const;

  int64_t size_;
  int64_t window_;
  SampleAt sample_at_;
  LengthOf length_of_;
};

}  // namespace phalanx
