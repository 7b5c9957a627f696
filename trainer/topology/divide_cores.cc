// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/divide_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using Field = int64_t ProcessingUnit::*;
using RankGpus = std::span<const RankGpu>;
using UnitsOfRanks = std::vector<ProcessingUnits>;

ProcessingUnits units_with(const ProcessingUnits& units, Field field, int64_t value) {
  ProcessingUnits found;
  std::ranges::copy_if(units, std::back_inserter(found),
                       [=](const ProcessingUnit& unit) { return unit.*field == value; });
  return found;
}

// The units of each value of a field. First those with the lowest index.
std::vector<ProcessingUnits> groups_by(const ProcessingUnits& units, Field field) {
  std::vector<ProcessingUnits> groups;
  for (const int64_t value : distinct(units, field)) {
    groups.push_back(units_with(units, field, value));
  }
  std::ranges::sort(groups, {}, [](const ProcessingUnits& group) { return group.front().index; });
  return groups;
}

ProcessingUnits joined(std::span<const ProcessingUnits> groups) {
  ProcessingUnits units;
  for (const ProcessingUnits& group : groups) {
    units.insert(units.end(), group.begin(), group.end());
  }
  std::ranges::sort(units, {}, &ProcessingUnit::index);
  return units;
}

bool have_gpus(RankGpus ranks) {
  return std::ranges::all_of(ranks, [](const RankGpu& rank) { return rank.node.has_value(); });
}

// ---- auto

// The node of each GPU. Nothing where a node has fewer cores than ranks.
UnitsOfRanks units_of_gpus(const ProcessingUnits& units, RankGpus ranks) {
  UnitsOfRanks chosen;
  for (const RankGpu& rank : ranks) {
    ProcessingUnits node = units_with(units, &ProcessingUnit::node, *rank.node);
    if (count_cores(node) < std::ranges::count(ranks, rank.node, &RankGpu::node)) return {};
    chosen.push_back(std::move(node));
  }
  return chosen;
}

// As many ranks on each group as it has of all cores: no rank loses any of its share, and no core
// is left over. Neighbours share a group. Nothing where that does not come out even.
UnitsOfRanks even_units(const ProcessingUnits& units, Field field, int64_t ranks) {
  const int64_t cores = count_cores(units);
  UnitsOfRanks chosen;
  for (const ProcessingUnits& group : groups_by(units, field)) {
    const int64_t share = count_cores(group) * ranks;
    if (share % cores != 0) return {};
    chosen.insert(chosen.end(), static_cast<size_t>(share / cores), group);
  }
  return chosen;
}

UnitsOfRanks automatic_units(const ProcessingUnits& units, RankGpus ranks) {
  const auto count = std::ssize(ranks);
  UnitsOfRanks chosen;
  if (have_gpus(ranks)) {
    chosen = units_of_gpus(units, ranks);
  } else {
    chosen = even_units(units, &ProcessingUnit::node, count);
    if (chosen.empty()) chosen = even_units(units, &ProcessingUnit::package, count);
  }
  if (chosen.empty()) chosen.assign(ranks.size(), units);
  return chosen;
}

// ---- node, socket, exclusive, core_complex

// Ranks without GPUs take the nodes in order, neighbours the same one.
std::vector<int64_t> node_of_each(const ProcessingUnits& units, RankGpus ranks) {
  const std::vector<int64_t> nodes = distinct(units, &ProcessingUnit::node);
  const bool on_gpus = have_gpus(ranks);
  std::vector<int64_t> chosen;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    chosen.push_back(on_gpus ? *ranks[rank].node : nodes[rank * nodes.size() / ranks.size()]);
  }
  return chosen;
}

// The n-th of `ranks` shares of the cores; the first ones are larger where that does not come out
// even.
ProcessingUnits share_of_cores(const ProcessingUnits& units, size_t nth, size_t ranks) {
  const std::vector<ProcessingUnits> cores = groups_by(units, &ProcessingUnit::core);
  if (cores.size() < ranks) {
    throw UserError(
        fmt::format("numa_binding exclusive: {} ranks of this host share cores {}; start at most "
                    "{} of them, or choose another binding",
                    ranks, describe(units), cores.size()));
  }
  const size_t each = cores.size() / ranks;
  const size_t larger = cores.size() % ranks;
  const size_t first = nth * each + std::min(nth, larger);
  return joined(std::span(cores).subspan(first, each + (nth < larger ? 1 : 0)));
}

// The caches with the most units come first.
ProcessingUnits cores_of_cache(const ProcessingUnits& units, size_t nth) {
  std::vector<ProcessingUnits> caches = groups_by(units, &ProcessingUnit::cache);
  std::ranges::stable_sort(caches, std::greater(), &ProcessingUnits::size);
  return std::move(caches[nth % caches.size()]);
}

/// Divides the units of NUMA nodes.
class Division {
 public:
  Division(const ProcessingUnits& units, NumaBinding binding, RankGpus ranks)
      : units_(units), binding_(binding), ranks_(ranks), nodes_(node_of_each(units, ranks)) {}

  ProcessingUnits of(size_t rank) const {
    const ProcessingUnits node = units_of_node(rank);
    const auto nth = static_cast<size_t>(
        std::count(nodes_.begin(), nodes_.begin() + static_cast<ptrdiff_t>(rank), nodes_[rank]));
    switch (binding_) {
      case NumaBinding::socket:
        return units_with(units_, &ProcessingUnit::package, node.front().package);
      case NumaBinding::exclusive:
        return share_of_cores(node, nth, std::ranges::count(nodes_, nodes_[rank]));
      case NumaBinding::core_complex:
        return cores_of_cache(node, nth);
      default:
        return node;
    }
  }

 private:
  ProcessingUnits units_of_node(size_t rank) const {
    ProcessingUnits node = units_with(units_, &ProcessingUnit::node, nodes_[rank]);
    if (!node.empty()) return node;
    throw UserError(fmt::format(
        "the GPU of local rank {} is on NUMA node {}, but the launcher lets that rank use cores {} "
        "alone: let the launcher bind ranks nearer to their GPUs, or set numa_binding to none",
        ranks_[rank].local_rank, nodes_[rank], describe(units_)));
  }

  const ProcessingUnits& units_;
  NumaBinding binding_;
  RankGpus ranks_;
  std::vector<int64_t> nodes_;
};

UnitsOfRanks units_of(const ProcessingUnits& units, NumaBinding binding, RankGpus ranks) {
  if (binding == NumaBinding::none) return UnitsOfRanks(ranks.size(), units);
  if (binding == NumaBinding::automatic) return automatic_units(units, ranks);
  const Division division(units, binding, ranks);
  UnitsOfRanks chosen;
  for (size_t rank = 0; rank < ranks.size(); ++rank) chosen.push_back(division.of(rank));
  return chosen;
}

}  // namespace

std::vector<RankCores> divide_cores(const ProcessingUnits& units, NumaBinding binding,
                                    RankGpus ranks) {
  std::vector<RankCores> all;
  for (ProcessingUnits& own : units_of(units, binding, ranks)) {
    const bool is_bound = own.size() < units.size();
    all.push_back({.units = std::move(own), .is_bound = is_bound});
  }
  for (RankCores& each : all) {
    each.ranks = std::ranges::count(all, each.units, &RankCores::units);
  }
  return all;
}

}  // namespace phalanx
