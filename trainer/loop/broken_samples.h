// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "trainer/api/broken_sample.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Counts the samples that a run leaves out because they cannot be read.
class BrokenSamples {
 public:
  /// Adds those of this rank, of so many on all ranks.
  void add(std::span<const BrokenSample> mine, int64_t on_all_ranks);

  /// On all ranks.
  int64_t count() const { return count_; }

  /// Throws std::runtime_error where there are more, on all ranks alike; `where` begins the
  /// message. Every rank calls it.
  void require_at_most(int64_t max_broken, const Ranks& ranks, const std::string& where = {}) const;

  /// How many of each source and kind all ranks have, in one line; empty without any. Every rank
  /// calls it.
  std::string summary(const Ranks& ranks) const;

 private:
  std::map<std::pair<std::string, std::string>, int64_t> mine_;  // By source and kind.
  int64_t count_ = 0;
};

}  // namespace phalanx
