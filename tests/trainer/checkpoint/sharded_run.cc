// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/checkpoint/sharded_run.h"

#include <utility>

#include "tests/tensors.h"

namespace phalanx {

ShardedTensorView part(std::string name, int64_t size, int64_t begin, int64_t end,
                       std::vector<int64_t> replicas) {
  return {.name = std::move(name),
          .shape = {size},
          .dtype = at::kFloat,
          .begin = begin,
          .end = end,
          .local = tensors::arange(begin, end, at::kFloat),
          .replicas = std::move(replicas)};
}

ShardedTensorView nth(std::string name, int64_t size, int64_t rank, int64_t ranks) {
  return part(std::move(name), size, size * rank / ranks, size * (rank + 1) / ranks, {rank});
}

Snapshot snapshot_of(int64_t step, int64_t rank, int64_t ranks) {
  Snapshot snapshot;
  snapshot.state.step = step;
  snapshot.model = {nth("cut", 40'001, rank, ranks), part("same", 9, 0, 9, {0, 1, 2, 3})};
  snapshot.model[1].replicas.resize(static_cast<std::size_t>(ranks));
  // A buffer that only counts on rank 0.
  snapshot.model.push_back(part("buffer", 3, 0, 3, {0}));
  if (rank != 0) snapshot.model.back().local.fill_(-7);
  snapshot.optimizer = {nth("cut.m", 40'001, rank, ranks), part("step", 1, 0, 1, {0})};
  snapshot.rng_states = {{"cpu", tensors::full({16}, rank, at::kByte)}};
  return snapshot;
}

}  // namespace phalanx
