// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/bind_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
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
void assume_only_node(const ProcessingUnits& units, std::vector<Node>& nodes) {
  const std::vector<int64_t> of_units = distinct(units, &ProcessingUnit::node);
  if (of_units.size() == 1) std::ranges::replace(nodes, Node(), Node(of_units.front()));
}

std::vector<Node> gpu_nodes(const ProcessingUnits& units, const RanksOnCores& ranks,
                            const std::filesystem::path& root) {
  std::vector<Node> nodes(ranks.local_ranks.size());
  if (!ranks.on_gpus) return nodes;
  const std::vector<std::string> gpus = gpu_addresses(root);
  std::ranges::transform(ranks.local_ranks, nodes.begin(),
                         [&](int64_t local_rank) { return node_of_gpu(gpus, local_rank, root); });
  assume_only_node(units, nodes);
  return nodes;
}

[[noreturn]] void refuse_unknown_node(int64_t local_rank) {
  throw UserError(fmt::format(
      "nothing tells which NUMA node the GPU of local rank {} is on (/proc/driver/nvidia/gpus, "
      "/sys/bus/pci/devices): set numa_binding to none",
      local_rank));
}

}  // namespace

RankCores cores_of_rank(NumaBinding binding, const RanksOnCores& ranks,
                        const std::filesystem::path& root) {
  const ProcessingUnits units = allowed_units();
  const std::vector<Node> nodes = gpu_nodes(units, ranks, root);
  if (ranks.on_gpus && std::ranges::count(nodes, Node()) > 0) {
    if (binding != NumaBinding::automatic && binding != NumaBinding::none) {
      refuse_unknown_node(ranks.local_rank);
    }
    binding = NumaBinding::none;
  }
  const auto own = std::ranges::find(ranks.local_ranks, ranks.local_rank);
  return divide_cores(units, binding, nodes)[static_cast<size_t>(own - ranks.local_ranks.begin())];
}

RankCores bind_rank(NumaBinding binding, const RanksOnCores& ranks) {
  RankCores cores = cores_of_rank(binding, ranks);
  if (cores.is_bound) bind_process(cores.units);
  return cores;
}

}  // namespace phalanx
