// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/processing_unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace phalanx {
namespace {

// "0-3,8", as the kernel writes it.
std::string index_list(std::span<const ProcessingUnit> units) {
  std::vector<std::string> ranges;
  for (size_t first = 0; first < units.size();) {
    size_t last = first;
    while (last + 1 < units.size() && units[last + 1].index == units[last].index + 1) ++last;
    ranges.push_back(first == last ? fmt::format("{}", units[first].index)
                                   : fmt::format("{}-{}", units[first].index, units[last].index));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

}  // namespace

std::vector<int64_t> distinct(std::span<const ProcessingUnit> units,
                              int64_t ProcessingUnit::*field) {
  std::set<int64_t> values;
  for (const ProcessingUnit& unit : units) values.insert(unit.*field);
  return {values.begin(), values.end()};
}

int64_t count_cores(std::span<const ProcessingUnit> units) {
  return static_cast<int64_t>(distinct(units, &ProcessingUnit::core).size());
}

std::string describe(std::span<const ProcessingUnit> units) {
  const int64_t cores = count_cores(units);
  const std::vector<int64_t> nodes = distinct(units, &ProcessingUnit::node);
  return fmt::format("{}: {} {} of NUMA {} {}", index_list(units), cores,
                     cores == 1 ? "core" : "cores", nodes.size() == 1 ? "node" : "nodes",
                     fmt::join(nodes, ", "));
}

}  // namespace phalanx
