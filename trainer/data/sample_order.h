// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "trainer/data/computed_permutation.h"

namespace phalanx {

/// How the order of an epoch's samples is made.
enum class OrderKind {
  distributed_sampler,  ///< Drawn and stored, as Python's DistributedSampler has it.
  computed,             ///< Computed place by place: no memory, however many samples there are.
};

/// Which sample stands at each place of an epoch: a pure function of (size, seed, epoch, kind).
class SampleOrder {
 public:
  /// Sample i at place i.
  static SampleOrder plain(int64_t size);
  /// `count` samples of so many (0 < count <= size) at equal distances, in their order.
  static SampleOrder spread(int64_t size, int64_t count);
  /// DistributedSampler's: torch.randperm(size) of a generator seeded with seed + epoch.
  static SampleOrder drawn(int64_t size, uint64_t seed, int64_t epoch);
  /// See ComputedPermutation.
  static SampleOrder computed(int64_t size, uint64_t seed, int64_t epoch);

  int64_t size() const { return size_; }
  /// The sample at `place`, in [0, size).
  int64_t at(int64_t place) const;

 private:
  struct Identity {};
  struct Spread {
    int64_t of = 0;
  };
  using Places = std::variant<Identity, Spread, std::vector<int64_t>, ComputedPermutation>;

  SampleOrder(int64_t size, Places places);

  int64_t size_;
  Places places_;
};

}  // namespace phalanx
