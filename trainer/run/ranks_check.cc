// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/ranks_check.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

#include "trainer/ranks/collectives/ranks_group.h"

namespace phalanx {
namespace {

// Their number and hosts are all that is known of them.
Ranks ranks_of_nodes(std::span<const int64_t> counts) {
  auto group = std::make_shared<Ranks::Group>();
  group->hosts.clear();
  for (size_t node = 0; node < counts.size(); ++node) {
    group->hosts.insert(group->hosts.end(), static_cast<size_t>(counts[node]),
                        static_cast<int64_t>(node));
  }
  group->world_size = std::ssize(group->hosts);
  group->find_place_on_host();
  return Ranks(std::move(group));
}

}  // namespace

void check_ranks_of_nodes(const RunPlan& plan, std::span<const int64_t> counts) {
  const Ranks ranks = ranks_of_nodes(counts);
  for (const RunPlan::Check& check : plan.checks) check(plan, ranks);
}

}  // namespace phalanx
