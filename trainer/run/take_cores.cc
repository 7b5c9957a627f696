// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/take_cores.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/terminal.h"
#include "trainer/topology/bind_rank.h"
#include "trainer/topology/rank_threads.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

bool has_own_choice(const World& world, NumaBinding binding) {
  const bool is_unbound = binding == NumaBinding::none || binding == NumaBinding::automatic;
  return world.ranks().is_single_rank() && !world.device().is_cuda() && is_unbound;
}

std::string warning(const std::string& text, size_t rank, int64_t ranks, int64_t world_size) {
  if (ranks == world_size) return text;
  if (ranks == 1) return fmt::format("rank {}: {}", rank, text);
  return fmt::format("rank {} and {} more: {}", rank, ranks - 1, text);
}

// OpenMP gives one rank the threads that its variable asks for: only what is wrong with them is
// left to say.
void check_own_choice() {
  const auto threads = chosen_threads();
  if (!threads) return;
  const auto found = too_many_threads(*threads, {.units = allowed_units()}, 1);
  if (found) print_warning(*found);
}

}  // namespace

std::vector<std::string> thread_warnings(const std::vector<std::string>& found) {
  std::vector<std::string> warnings;
  for (size_t rank = 0; rank < found.size(); ++rank) {
    const auto here = found.begin() + static_cast<ptrdiff_t>(rank);
    const bool is_told = std::find(found.begin(), here, found[rank]) != here;
    if (found[rank].empty() || is_told) continue;
    warnings.push_back(
        warning(found[rank], rank, std::ranges::count(found, found[rank]), std::ssize(found)));
  }
  return warnings;
}

void take_cores(const World& world, NumaBinding binding, const std::filesystem::path& root) {
  if (has_own_choice(world, binding)) return check_own_choice();
  const Ranks& ranks = world.ranks();
  const RankCores cores = bind_rank(binding, {.local_ranks = world.local_ranks_on_cores(),
                                              .local_rank = ranks.local_rank(),
                                              .on_gpus = world.device().is_cuda()});
  // OpenMP has read its variable when the program was loaded, before a launcher forked it.
  const int64_t threads =
      chosen_threads().value_or(threads_of_rank(cores, ranks.local_world_size(), root));
  at::set_num_threads(static_cast<int>(threads));
  const auto found = ranks.all_gather(
      too_many_threads(threads, cores, ranks.local_world_size(), root).value_or(std::string()));
  if (!ranks.is_first()) return;
  for (const std::string& line : thread_warnings(found)) print_warning(line);
}

}  // namespace phalanx
