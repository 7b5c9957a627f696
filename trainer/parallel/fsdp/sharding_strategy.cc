// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/sharding_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>

#include "trainer/base/user_error.h"

namespace phalanx {

std::string_view to_string(ShardingStrategy strategy) {
  switch (strategy) {
    case ShardingStrategy::full_shard:
      return "FULL_SHARD";
    case ShardingStrategy::shard_grad_op:
      return "SHARD_GRAD_OP";
    case ShardingStrategy::no_shard:
      return "NO_SHARD";
    case ShardingStrategy::hybrid_shard:
      return "HYBRID_SHARD";
    case ShardingStrategy::hybrid_shard_zero2:
      return "_HYBRID_SHARD_ZERO2";
  }
  throw std::logic_error("an unknown ShardingStrategy");
}

bool reshards_after_forward(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
}

bool is_hybrid(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::hybrid_shard ||
         strategy == ShardingStrategy::hybrid_shard_zero2;
}

namespace fsdp {

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> result;
  for (int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) result.push_back(i);
  }
  return result;
}

namespace {

// The ranks of each host in their order, the hosts in that of their first ranks.
std::vector<std::vector<int64_t>> by_host(std::span<const int64_t> hosts) {
  std::map<int64_t, std::size_t> index_of;
  std::vector<std::vector<int64_t>> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [found, is_new] = index_of.try_emplace(hosts[rank], ranks.size());
    if (is_new) ranks.emplace_back();
    ranks[found->second].push_back(static_cast<int64_t>(rank));
  }
  return ranks;
}

int64_t hybrid_shards(const std::vector<std::vector<int64_t>>& by_host, int64_t world_size,
                      std::optional<int64_t> shard_group_size) {
  if (shard_group_size) {
    if (*shard_group_size >= 1 && world_size % *shard_group_size == 0) return *shard_group_size;
    throw UserError(fmt::format(
        "parallel.fsdp.shard_group_size is {}, which does not divide the {} ranks: it can be {}",
        *shard_group_size, world_size, fmt::join(divisors(world_size), ", ")));
  }
  std::set<std::size_t> sizes;
  for (const auto& ranks : by_host) sizes.insert(ranks.size());
  if (sizes.size() == 1) return static_cast<int64_t>(*sizes.begin());
  throw UserError(fmt::format(
      "the hosts have unequal numbers of the {} ranks ({}), so that groups of a host's ranks do "
      "not "
      "come out even: start as many ranks on each host, or set parallel.fsdp.shard_group_size to "
      "one of {}",
      world_size, fmt::join(sizes, ", "), fmt::join(divisors(world_size), ", ")));
}

}  // namespace

Mesh mesh_of(ShardingStrategy strategy, int64_t rank, std::span<const int64_t> hosts,
             std::optional<int64_t> shard_group_size) {
  if (shard_group_size && !is_hybrid(strategy)) {
    throw UserError(fmt::format(
        "parallel.fsdp.shard_group_size is for HYBRID_SHARD and _HYBRID_SHARD_ZERO2; {} shards "
        "over {}: leave it out, or choose a hybrid strategy",
        to_string(strategy), strategy == ShardingStrategy::no_shard ? "nobody" : "all ranks"));
  }
  const auto world_size = std::ssize(hosts);
  Mesh mesh{.shards = world_size, .shard_index = rank, .ranks = {}};
  if (strategy == ShardingStrategy::no_shard) {
    return {.replicas = world_size, .replica_index = rank, .ranks = {}};
  }
  if (!is_hybrid(strategy)) return mesh;
  const auto ranks_of_hosts = by_host(hosts);
  for (const auto& ranks : ranks_of_hosts) {
    mesh.ranks.insert(mesh.ranks.end(), ranks.begin(), ranks.end());
  }
  mesh.shards = hybrid_shards(ranks_of_hosts, world_size, shard_group_size);
  mesh.replicas = world_size / mesh.shards;
  const int64_t index = std::ranges::find(mesh.ranks, rank) - mesh.ranks.begin();
  mesh.replica_index = index / mesh.shards;
  mesh.shard_index = index % mesh.shards;
  if (std::ranges::is_sorted(mesh.ranks)) mesh.ranks.clear();
  return mesh;
}

}  // namespace fsdp
}  // namespace phalanx
