// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/deal.h"

#include <algorithm>
#include <cstddef>

namespace phalanx {

int64_t Deal::end_after(int64_t consumed) const {
  if (!drop_last) return samples;
  const int64_t global_batch = batch_size * world_size;
  return consumed + (samples - consumed) / global_batch * global_batch;
}

int64_t Deal::samples_per_epoch() const { return end_after(0); }

int64_t Deal::batches_after(int64_t consumed) const {
  const int64_t left = end_after(consumed) - consumed;
  const int64_t of_rank_0 = (left + world_size - 1) / world_size;  // no rank has more
  return (of_rank_0 + batch_size - 1) / batch_size;
}

std::vector<int64_t> Deal::places(int64_t consumed, int64_t batch) const {
  const int64_t end = end_after(consumed);
  const int64_t first = consumed + rank + batch * batch_size * world_size;
  std::vector<int64_t> chosen;
  const int64_t left = std::max<int64_t>((end - first + world_size - 1) / world_size, 0);
  chosen.reserve(static_cast<size_t>(std::min(batch_size, left)));
  for (int64_t i = 0; i < batch_size; ++i) {
    const int64_t place = first + i * world_size;
    if (place >= end) break;
    chosen.push_back(place);
  }
  return chosen;
}

std::vector<int64_t> Deal::indices(const SampleOrder& order, int64_t consumed,
                                   int64_t batch) const {
  std::vector<int64_t> samples = places(consumed, batch);
  for (int64_t& sample : samples) sample = order.at(sample);
  return samples;
}

}  // namespace phalanx
