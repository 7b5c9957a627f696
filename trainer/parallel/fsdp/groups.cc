// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/groups.h"

#include <utility>
#include <vector>

namespace phalanx::fsdp {
namespace {

// Parts `first` and so many behind it of a copy.
std::vector<int64_t> shard_group_of(const Mesh& mesh, int64_t replica, int64_t first,
                                    int64_t count) {
  std::vector<int64_t> members;
  for (int64_t s = first; s < first + count; ++s) members.push_back(mesh.rank_of(replica, s));
  return members;
}

std::vector<int64_t> replicate_group_of(const Mesh& mesh, int64_t shard) {
  std::vector<int64_t> members;
  for (int64_t r = 0; r < mesh.replicas; ++r) members.push_back(mesh.rank_of(r, shard));
  return members;
}

// Every rank's group of so many neighbours; this one's.
Ranks neighbours(const Ranks& world, const Mesh& mesh, int64_t count) {
  Ranks own;
  for (int64_t r = 0; r < mesh.replicas; ++r) {
    for (int64_t s = 0; s < mesh.shards; s += count) {
      if (auto group = world.subgroup(shard_group_of(mesh, r, s, count))) own = std::move(*group);
    }
  }
  return own;
}

}  // namespace

Groups make_groups(const Ranks& world, const Mesh& mesh, int64_t post_forward) {
  Groups groups{.world = world,
                .shard = Ranks(),
                .replicate = Ranks(),
                .post_forward = Ranks(),
                .mesh = mesh};
  if (mesh.replicas == 1) groups.shard = world;
  if (mesh.shards == 1) groups.replicate = world;
  if (mesh.replicas > 1 && mesh.shards > 1) {
    groups.shard = neighbours(world, mesh, mesh.shards);
    for (int64_t s = 0; s < mesh.shards; ++s) {
      if (auto group = world.subgroup(replicate_group_of(mesh, s))) {
        groups.replicate = std::move(*group);
      }
    }
  }
  if (post_forward > 1) groups.post_forward = neighbours(world, mesh, post_forward);
  return groups;
}

Groups whole_groups(const Ranks& world) {
  return {.world = world,
          .shard = Ranks(),
          .replicate = world,
          .post_forward = Ranks(),
          .mesh = {.replicas = world.world_size(),
                   .shards = 1,
                   .replica_index = world.rank(),
                   .shard_index = 0,
                   .ranks = {}}};
}

}  // namespace phalanx::fsdp
