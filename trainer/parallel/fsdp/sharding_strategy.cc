// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/sharding_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

namespace fsdp {

bool is_hybrid(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::hybrid_shard ||
         strategy == ShardingStrategy::hybrid_shard_zero2;
}

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> result;
  for (int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) result.push_back(i);
  }
  return result;
}

namespace {

int64_t hybrid_shards(int64_t world_size, int64_t local_world_size,
                      std::optional<int64_t> shard_group_size) {
  const int64_t shards = shard_group_size.value_or(local_world_size);
  if (shards >= 1 && world_size % shards == 0) return shards;
  if (shard_group_size) {
    throw UserError(fmt::format(
        "parallel.fsdp.shard_group_size is {}, which does not divide the {} ranks: it can be {}",
        shards, world_size, fmt::join(divisors(world_size), ", ")));
  }
  throw UserError(fmt::format(
      "a host has {} of the {} ranks, so that groups of a host's ranks do not come out even: set "
      "parallel.fsdp.shard_group_size to one of {}",
      shards, world_size, fmt::join(divisors(world_size), ", ")));
}

}  // namespace

Mesh mesh_of(ShardingStrategy strategy, int64_t rank, int64_t world_size, int64_t local_world_size,
             std::optional<int64_t> shard_group_size) {
  if (shard_group_size && !is_hybrid(strategy)) {
    throw UserError(fmt::format(
        "parallel.fsdp.shard_group_size is for HYBRID_SHARD and _HYBRID_SHARD_ZERO2; {} shards "
        "over {}: leave it out, or choose a hybrid strategy",
        to_string(strategy), strategy == ShardingStrategy::no_shard ? "nobody" : "all ranks"));
  }
  int64_t shards = world_size;
  if (strategy == ShardingStrategy::no_shard) shards = 1;
  if (is_hybrid(strategy)) shards = hybrid_shards(world_size, local_world_size, shard_group_size);
  return {.replicas = world_size / shards,
          .shards = shards,
          .replica_index = rank / shards,
          .shard_index = rank % shards};
}

}  // namespace fsdp
}  // namespace phalanx
