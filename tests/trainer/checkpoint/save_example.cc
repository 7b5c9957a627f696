// SPDX-License-Identifier: Apache-2.0
// save_example FOLDER RANKS HOSTS: so many ranks, on so many hosts by name, save a checkpoint whose
// tensors' elements are their own numbers.

#include <cstdio>
#include <string>

#include "tests/trainer/checkpoint/sharded_run.h"
#include "tests/trainer/parallel/in_ranks.h"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string folder = arguments[1];
  const int64_t ranks = std::stoll(arguments[2]);
  const int64_t hosts = std::stoll(arguments[3]);
  const auto outcome = phalanx::in_ranks(ranks, [&](phalanx::World& world) {
    const int64_t rank = world.ranks().rank();
    phalanx::save_checkpoint(
        folder, phalanx::snapshot_of(7, rank, ranks),
        {.limits = {.file_bytes = 100'000}, .host = "host " + std::to_string(rank % hosts)},
        world.ranks());
  });
  std::fputs(outcome.message.c_str(), stderr);
  return outcome.exit_code;
}
