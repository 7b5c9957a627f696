// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/computed_permutation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/data/split_mix.h"

namespace phalanx {
namespace {

uint64_t divided_up(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

}  // namespace

ComputedPermutation::ComputedPermutation(int64_t size, uint64_t seed, uint64_t epoch)
    : size_(size) {
  if (size < 0) throw std::invalid_argument("a permutation of less than nothing");
  const auto cells = static_cast<uint64_t>(std::max<int64_t>(size, 1));
  width_ = std::max<uint64_t>(1, static_cast<uint64_t>(std::sqrt(static_cast<double>(cells))));
  height_ = divided_up(cells, width_);
  // Two numbers whose sum is the same must not give the same order.
  uint64_t state =
      split_mix(seed + kSplitMixStep) ^ split_mix(split_mix(epoch + kSplitMixStep) + kSplitMixStep);
  for (uint64_t& key : keys_) key = split_mix(state += kSplitMixStep);
}

// Cells beyond the last place are walked over: less than one in width_, so that hardly any place
// takes more than one turn.
int64_t ComputedPermutation::at(int64_t place) const {
  if (place < 0 || place >= size_) throw std::out_of_range("a place beyond a permutation");
  auto cell = static_cast<uint64_t>(place);
  do {
    uint64_t row = cell / width_;
    uint64_t column = cell % width_;
    for (int round = 0; round < kRounds; round += 2) {
      row = (row + split_mix(column ^ keys_[round]) % height_) % height_;
      column = (column + split_mix(row ^ keys_[round + 1]) % width_) % width_;
    }
    cell = row * width_ + column;
  } while (cell >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(cell);
}

}  // namespace phalanx
