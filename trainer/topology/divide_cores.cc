// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/divide_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using Field = int64_t ProcessingUnit::*;
using Places = std::span<const std::optional<int64_t>>;

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

bool are_known(Places gpu_nodes) {
  return std::ranges::all_of(gpu_nodes, [](const auto& node) { return node.has_value(); });
}

// Ranks without GPUs take the nodes in order, neighbours the same one.
std::vector<int64_t> node_of_each(const ProcessingUnits& units, Places gpu_nodes) {
  const std::vector<int64_t> nodes = distinct(units, &ProcessingUnit::node);
  const bool has_gpus = are_known(gpu_nodes);
  std::vector<int64_t> chosen;
  for (size_t rank = 0; rank < gpu_nodes.size(); ++rank) {
    chosen.push_back(has_gpus ? *gpu_nodes[rank] : nodes[rank * nodes.size() / gpu_nodes.size()]);
  }
  return chosen;
}

// A binding that leaves no rank with less than its share, also where another run does the same.
NumaBinding automatic_binding(const ProcessingUnits& units, Places gpu_nodes) {
  const std::vector<int64_t> nodes = distinct(units, &ProcessingUnit::node);
  if (are_known(gpu_nodes)) {
    const bool are_here = std::ranges::all_of(gpu_nodes, [&](const std::optional<int64_t>& node) {
      return std::ranges::binary_search(nodes, *node);
    });
    return are_here ? NumaBinding::node : NumaBinding::none;
  }
  const size_t ranks = gpu_nodes.size();
  if (ranks % nodes.size() == 0) return NumaBinding::node;
  const size_t packages = distinct(units, &ProcessingUnit::package).size();
  return ranks % packages == 0 ? NumaBinding::socket : NumaBinding::none;
}

// The n-th of `ranks` shares of the cores; the first ones are larger where that does not come out
// even.
ProcessingUnits share_of_cores(const ProcessingUnits& units, size_t nth, size_t ranks) {
  const std::vector<ProcessingUnits> cores = groups_by(units, &ProcessingUnit::core);
  if (cores.size() < ranks) {
    throw UserError(
        fmt::format("numa_binding exclusive: {} ranks of this host share cores {}; start at most "
                    "{} of them, or "
                    "choose another binding",
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
  Division(const ProcessingUnits& units, NumaBinding binding, Places gpu_nodes)
      : units_(units), binding_(binding), nodes_(node_of_each(units, gpu_nodes)) {}

  ProcessingUnits of(size_t rank) const {
    if (binding_ == NumaBinding::none) return units_;
    const ProcessingUnits node = units_of_node(nodes_[rank]);
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
  ProcessingUnits units_of_node(int64_t number) const {
    ProcessingUnits node = units_with(units_, &ProcessingUnit::node, number);
    if (!node.empty()) return node;
    throw UserError(
        fmt::format("this rank's GPU is on NUMA node {}, but the launcher lets this rank use cores "
                    "{} alone: let "
                    "the launcher bind ranks nearer to their GPUs, or set numa_binding to none",
                    number, describe(units_)));
  }

  const ProcessingUnits& units_;
  NumaBinding binding_;
  std::vector<int64_t> nodes_;
};

}  // namespace

std::vector<RankCores> divide_cores(const ProcessingUnits& units, NumaBinding binding,
                                    Places gpu_nodes) {
  if (binding == NumaBinding::automatic) binding = automatic_binding(units, gpu_nodes);
  const Division division(units, binding, gpu_nodes);
  std::vector<RankCores> all;
  for (size_t rank = 0; rank < gpu_nodes.size(); ++rank) {
    ProcessingUnits own = division.of(rank);
    const bool is_bound = own.size() < units.size();
    all.push_back({.units = std::move(own), .is_bound = is_bound});
  }
  for (RankCores& each : all) {
    each.ranks = std::ranges::count(all, each.units, &RankCores::units);
  }
  return all;
}

}  // namespace phalanx
