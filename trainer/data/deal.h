// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/sample_order.h"

namespace phalanx {

/// How an epoch's samples are dealt to ranks and cut into micro-batches. Sample k of the order
/// goes to rank k % world_size, as DistributedSampler has it; unlike there nothing is padded: no
/// sample comes twice or is lost, and ranks may differ by one sample at the end. All have the same
/// number of micro-batches: a rank's last one may be empty. So global batch n
/// (batch_size * world_size samples) is the same set of samples at any world size that keeps it.
struct Deal {
  int64_t samples = 0;     ///< Samples of the data set.
  int64_t batch_size = 1;  ///< Samples a rank and micro-batch.
  int64_t rank = 0;
  int64_t world_size = 1;
  bool drop_last = false;  ///< Leaves out a last global batch that is not full.

  /// Samples of an epoch over all ranks, after drop_last.
  int64_t samples_per_epoch() const;

  /// Micro-batches of each rank in the rest of an epoch of which `consumed` samples over all ranks
  /// have been dealt out.
  int64_t batches_after(int64_t consumed) const;

  /// The places in the order of this rank's micro-batch `batch` (from 0), counted from `consumed`
  /// on; none where the last ones went to lower ranks.
  std::vector<int64_t> places(int64_t consumed, int64_t batch) const;
  /// The samples at these places.
  std::vector<int64_t> indices(const SampleOrder& order, int64_t consumed, int64_t batch) const;

 private:
  // One past the last place of the order that is dealt out after `consumed`.
  int64_t end_after(int64_t consumed) const;
};

}  // namespace phalanx
