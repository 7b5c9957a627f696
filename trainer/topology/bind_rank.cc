// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/bind_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/host/gpus.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

using Node = std::optional<int64_t>;

// Where the launcher shows each rank its own GPU alone, the others' are taken to be near it.
Node node_of_gpu(const std::vector<std::string>& gpus, int64_t local_rank,
                 const std::filesystem::path& root) {
  const size_t gpu = gpus.size() == 1 ? 0 : static_cast<size_t>(local_rank);
  return gpu < gpus.size() ? numa_node_of(gpus[gpu], root) : std::nullopt;
}

// A host with one node has no other that a GPU could be on; its kernel often does not say so.
void assume_only_node(const ProcessingUnits& units, std::vector<RankGpu>& ranks) {
  const std::vector<int64_t> nodes = distinct(units, &ProcessingUnit::node);
  if (nodes.size() > 1) return;
  for (RankGpu& rank : ranks) rank.node = rank.node.value_or(nodes.front());
}

std::vector<RankGpu> gpus_of(const ProcessingUnits& units, const RanksOnCores& ranks,
                             const std::filesystem::path& root) {
  std::vector<RankGpu> found;
  for (const int64_t local_rank : ranks.local_ranks) found.push_back({.local_rank = local_rank});
  if (!ranks.on_gpus) return found;
  const std::vector<std::string> gpus = gpu_addresses(root);
  for (RankGpu& rank : found) rank.node = node_of_gpu(gpus, rank.local_rank, root);
  assume_only_node(units, found);
  return found;
}

[[noreturn]] void refuse_unknown_node(int64_t local_rank) {
  throw UserError(fmt::format(
      "nothing tells which NUMA node the GPU of local rank {} is on (/proc/driver/nvidia/gpus, "
      "/sys/bus/pci/devices): set numa_binding to none",
      local_rank));
}

// What is left of a binding by GPUs whose nodes may be unknown.
NumaBinding possible_binding(NumaBinding binding, const std::vector<RankGpu>& gpus) {
  const auto unknown = std::ranges::find(gpus, Node(), &RankGpu::node);
  if (unknown == gpus.end() || binding == NumaBinding::none) return binding;
  if (binding != NumaBinding::automatic) refuse_unknown_node(unknown->local_rank);
  return NumaBinding::none;
}

}  // namespace

RankCores cores_of_rank(NumaBinding binding, const RanksOnCores& ranks,
                        const std::filesystem::path& root) {
  const auto own = std::ranges::find(ranks.local_ranks, ranks.local_rank);
  if (own == ranks.local_ranks.end()) {
    throw std::logic_error(fmt::format(
        "local rank {} is not among the ranks that may use its cores", ranks.local_rank));
  }
  const ProcessingUnits units = allowed_units();
  const std::vector<RankGpu> gpus = gpus_of(units, ranks, root);
  if (ranks.on_gpus) binding = possible_binding(binding, gpus);
  return divide_cores(units, binding, gpus)[static_cast<size_t>(own - ranks.local_ranks.begin())];
}

RankCores bind_rank(NumaBinding binding, const RanksOnCores& ranks) {
  RankCores cores = cores_of_rank(binding, ranks);
  if (cores.is_bound) bind_process(cores.units);
  return cores;
}

}  // namespace phalanx
