// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace phalanx::test_device {

/// A vector clock: of each stream, by its number, how many of its operations are over.
class Clock {
 public:
  uint64_t of(uint32_t stream) const { return stream < over_.size() ? over_[stream] : 0; }
  std::size_t streams() const { return over_.size(); }

  void raise(uint32_t stream, uint64_t operations) {
    if (stream >= over_.size()) over_.resize(stream + 1);
    over_[stream] = std::max(over_[stream], operations);
  }
  void join(const Clock& other) {
    if (over_.size() < other.over_.size()) over_.resize(other.over_.size());
    for (std::size_t i = 0; i < other.over_.size(); ++i) {
      over_[i] = std::max(over_[i], other.over_[i]);
    }
  }
  bool covers(const Clock& other) const { return other.beyond(*this) == 0; }

  /// Operations that this clock counts as over and `other` does not.
  uint64_t beyond(const Clock& other) const {
    uint64_t operations = 0;
    for (uint32_t i = 0; i < over_.size(); ++i) {
      operations += over_[i] - std::min(over_[i], other.of(i));
    }
    return operations;
  }

  /// The same, with nothing known of that stream.
  Clock without(uint32_t stream) const {
    Clock clock = *this;
    if (stream < clock.over_.size()) clock.over_[stream] = 0;
    return clock;
  }

 private:
  std::vector<uint64_t> over_;
};

}  // namespace phalanx::test_device
