// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/take_cores.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "trainer/metrics/console.h"
#include "trainer/topology/bind_rank.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

// OpenMP has read its variable when the program was loaded, before a launcher forked it.
int64_t threads_of_environment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? 0 : std::max(std::atoi(text), 0);
}

bool has_own_choice(const World& world, NumaBinding binding) {
  const bool is_unbound = binding == NumaBinding::none || binding == NumaBinding::automatic;
  return world.ranks().is_single_rank() && !world.device().is_cuda() && is_unbound;
}

void warn_of_threads(int64_t threads, const RankCores& cores) {
  Console::standard().line(fmt::format(
      "warning: {} ranks of {} threads each (OMP_NUM_THREADS) share cores {}: they will wait for "
      "each other",
      cores.ranks, threads, describe(cores.units)));
}

}  // namespace

void take_cores(const World& world, NumaBinding binding) {
  if (has_own_choice(world, binding)) return;
  const RankCores cores = bind_rank(binding, {.local_ranks = world.local_ranks_on_cores(),
                                              .local_rank = world.ranks().local_rank(),
                                              .on_gpus = world.device().is_cuda()});
  const int64_t chosen = threads_of_environment();
  const int64_t share = threads_of_rank(cores.units, cores.ranks);
  const int64_t threads = chosen > 0 ? chosen : share;
  at::set_num_threads(static_cast<int>(threads));
  const bool are_too_many = threads > 1 && threads > share;
  if (are_too_many && world.ranks().is_first()) warn_of_threads(threads, cores);
}

}  // namespace phalanx
