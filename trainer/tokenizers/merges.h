// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace phalanx {

/// The merges of a byte-pair encoding (Sennrich et al., 2016): which two neighbours become which
/// token, and in which order. Thread-safe once they are all added.
class Merges {
 public:
  /// The next merge in order: `left` and `right` become `token`. The last of a pair counts.
  void add(int32_t left, int32_t right, int32_t token);

  /// Whether a pair was added more than once.
  bool repeat_pairs() const { return repeat_pairs_; }

  /// Applies the merges to tokens[begin], tokens[begin + 1], … until none is left to apply: each
  /// time the first in order, of these the leftmost.
  void apply(std::vector<int32_t>& tokens, size_t begin) const;

 private:
  // How a pair of neighbours is merged.
  struct Merge {
    int32_t rank;  // kNone: not at all.
    int32_t token;
  };
  static constexpr int32_t kNone = INT32_MAX;
  static constexpr size_t kMostScanned = 64;

  Merge find(int32_t left, int32_t right) const;
  size_t scan(std::span<int32_t> tokens) const;
  size_t take_from_queue(std::span<int32_t> tokens) const;

  ska::flat_hash_map<uint64_t, Merge> merges_;
  int32_t next_rank_ = 0;
  bool repeat_pairs_ = false;
};

}  // namespace phalanx
