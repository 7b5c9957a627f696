// SPDX-License-Identifier: Apache-2.0
// save_example FOLDER RANKS HOSTS: so many ranks, on so many hosts by name, save a checkpoint whose
// tensors' elements are their own numbers. Of two matrices each rank holds columns.

#include <cstdio>
#include <string>
#include <utility>

#include "tests/tensors.h"
#include "tests/trainer/checkpoint/sharded_run.h"
#include "tests/trainer/parallel/in_ranks.h"

namespace {

phalanx::ShardedTensorView columns(std::string name, int64_t rank, int64_t ranks) {
  constexpr int64_t kRows = 6;
  constexpr int64_t kColumns = 8;
  const int64_t first = kColumns * rank / ranks;
  const int64_t count = kColumns * (rank + 1) / ranks - first;
  const at::Tensor whole =
      phalanx::tensors::arange(kRows * kColumns, at::kFloat).view({kRows, kColumns});
  return {.name = std::move(name),
          .shape = {kRows, kColumns},
          .dtype = at::kFloat,
          .box = phalanx::TensorBox{{0, first}, {kRows, count}},
          .begin = 0,
          .end = kRows * count,
          .local = whole.narrow(1, first, count),
          .replicas = {rank}};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string folder = arguments[1];
  const int64_t ranks = std::stoll(arguments[2]);
  const int64_t hosts = std::stoll(arguments[3]);
  const auto outcome = phalanx::in_ranks(ranks, [&](phalanx::World& world) {
    const int64_t rank = world.ranks().rank();
    phalanx::Snapshot snapshot = phalanx::snapshot_of(7, rank, ranks);
    snapshot.model.push_back(columns("matrix", rank, ranks));
    snapshot.optimizer.push_back(columns("matrix.m", rank, ranks));
    phalanx::save_checkpoint(
        folder, snapshot,
        {.limits = {.file_bytes = 100'000}, .host = "host " + std::to_string(rank % hosts)},
        world.ranks());
  });
  std::fputs(outcome.message.c_str(), stderr);
  return outcome.exit_code;
}
