// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace phalanx {

/// The lengths of parts that lie end to end, and which part holds a place of the whole.
class EndToEnd {
 public:
  /// Adds a part behind the others. It may be empty.
  void add(int64_t length) { ends_.push_back(size() + length); }

  void reserve(std::size_t parts) { ends_.reserve(parts); }

  std::size_t parts() const { return ends_.size(); }

  /// The size of the whole.
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  /// The part that holds a place of the whole, which is never an empty one; parts() behind the end.
  std::size_t part_at(int64_t place) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), place) -
                                    ends_.begin());
  }

  /// Where a part begins and ends in the whole. Throws std::out_of_range.
  int64_t begin(std::size_t part) const { return part == 0 ? 0 : ends_.at(part - 1); }
  int64_t end(std::size_t part) const { return ends_.at(part); }

  int64_t length(std::size_t part) const { return end(part) - begin(part); }

  /// The lengths of all parts.
  std::vector<int64_t> lengths() const {
    std::vector<int64_t> lengths = ends_;
    std::adjacent_difference(lengths.begin(), lengths.end(), lengths.begin());
    return lengths;
  }

 private:
  std::vector<int64_t> ends_;
};

}  // namespace phalanx
