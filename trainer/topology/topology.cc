// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "trainer/host/cores.h"

namespace phalanx {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

Bitmap make_bitmap() { return {hwloc_bitmap_alloc(), &hwloc_bitmap_free}; }

Topology make_topology() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) throw std::runtime_error("hwloc could not be initialised");
  return {made, &hwloc_topology_destroy};
}

// Groups must stay among its objects: a NUMA node that is less than a socket is in one.
Topology load_topology() {
  Topology topology = make_topology();
  // By default hwloc binds this thread to each unit in turn, to ask it about itself.
  hwloc_topology_set_flags(topology.get(), HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  if (hwloc_topology_load(topology.get()) != 0) {
    throw std::runtime_error("hwloc could not read this host's topology");
  }
  return topology;
}

int64_t number_of(const hwloc_obj* object) { return object == nullptr ? 0 : object->logical_index; }

// A unit without a core of its own is one itself: the kernel does not tell, on some virtual hosts.
int64_t core_of(hwloc_topology_t topology, hwloc_obj_t unit) {
  const hwloc_obj* core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
  return number_of(core == nullptr ? unit : core);
}

// The outermost one. Levels of one kind of cache are numbered apart from those of another, so its
// first unit stands for it.
int64_t cache_of(hwloc_obj_t unit) {
  int64_t cache = unit->logical_index;
  for (hwloc_obj_t around = unit->parent; around != nullptr; around = around->parent) {
    if (hwloc_obj_type_is_dcache(around->type)) cache = hwloc_bitmap_first(around->cpuset);
  }
  return cache;
}

ProcessingUnit unit_of(hwloc_topology_t topology, hwloc_obj_t unit) {
  return {.index = unit->os_index,
          .core = core_of(topology, unit),
          .cache = cache_of(unit),
          .node = std::max(hwloc_bitmap_first(unit->nodeset), 0),
          .package = number_of(hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, unit))};
}

}  // namespace

ProcessingUnits allowed_units() {
  const Topology topology = load_topology();
  const Bitmap affinity = make_bitmap();
  const bool is_known =
      hwloc_get_cpubind(topology.get(), affinity.get(), HWLOC_CPUBIND_PROCESS) == 0;
  ProcessingUnits units;
  for (hwloc_obj_t unit = nullptr;
       (unit = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, unit)) != nullptr;) {
    if (is_known && !hwloc_bitmap_isset(affinity.get(), unit->os_index)) continue;
    units.push_back(unit_of(topology.get(), unit));
  }
  if (units.empty()) throw std::runtime_error("hwloc finds no core that this process may use");
  std::ranges::sort(units, {}, &ProcessingUnit::index);
  return units;
}

void bind_process(std::span<const ProcessingUnit> units) {
  const Topology topology = load_topology();
  const Bitmap set = make_bitmap();
  for (const ProcessingUnit& unit : units) {
    hwloc_bitmap_set(set.get(), static_cast<unsigned>(unit.index));
  }
  if (hwloc_set_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_PROCESS) == 0) return;
  throw std::system_error(errno, std::generic_category(), "bind to cores " + describe(units));
}

std::optional<int64_t> numa_node_of(const std::string& pci_address,
                                    const std::filesystem::path& root) {
  std::ifstream file(root / "sys/bus/pci/devices" / pci_address / "numa_node");
  int64_t node = -1;
  if (file >> node && node >= 0) return node;
  return std::nullopt;
}

int64_t usable_cores() {
  return std::max<int64_t>(std::min(count_cores(allowed_units()), cpu_quota()), 1);
}

}  // namespace phalanx
