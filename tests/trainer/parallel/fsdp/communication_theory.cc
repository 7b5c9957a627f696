// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/parallel/fsdp/communication_theory.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace phalanx::fsdp::testing {

std::vector<std::vector<Flat>> flats_of_stack() {
  std::vector<std::vector<Flat>> units;
  for (int64_t i = 0; i < kLayers; ++i) {
    units.push_back({Flat{{kWidths.at(i) * kWidths.at(i + 1), kWidths.at(i + 1)}}});
    if (i == kFrozenLayer) units.back().push_back({{kWidths.at(i + 1)}, /*is_trained=*/false});
  }
  units.push_back({Flat{{kWidths.front(), kWidths.back()}}});
  return units;
}

std::string to_string(const Way& way) {
  constexpr std::array kPrefetch{"BACKWARD_PRE", "BACKWARD_POST"};
  const auto& prefetch = way.options.backward_prefetch;
  const bool sharded = way.options.accumulated_gradients == AccumulatedGradients::sharded;
  return fmt::format("{} over {} x {} ranks, {} passes, gradients {}, prefetch {}{}, kept by {}",
                     phalanx::to_string(way.strategy), way.replicas(), way.shards(),
                     way.synchronize.size(), sharded ? "sharded" : "whole",
                     prefetch ? kPrefetch.at(static_cast<size_t>(*prefetch)) : "none",
                     way.options.forward_prefetch.value_or(false) ? ", forward" : "",
                     way.kept_by());
}

std::vector<int64_t> members(const Way& way, Role role, int64_t rank) {
  const int64_t shards = way.shards();
  int64_t first = 0;
  int64_t step = 1;
  int64_t size = way.world_size;
  if (role == Role::shard) {
    first = rank - rank % shards;
    size = shards;
  }
  if (role == Role::neighbours) {
    first = rank - rank % way.kept_by();
    size = way.kept_by();
  }
  if (role == Role::replicate) {
    first = rank % shards;
    step = shards;
    size = way.replicas();
  }
  std::vector<int64_t> members;
  for (int64_t i = 0; i < size; ++i) members.push_back(first + i * step);
  return members;
}

std::string group_name(const Way& way, Role role, int64_t rank) {
  const bool is_flat = way.shards() == 1 || way.replicas() == 1;
  if (role == Role::neighbours) {
    const int64_t before = is_flat ? 0 : way.replicas() + way.shards();
    return fmt::format("world/{}", before + rank / way.kept_by());
  }
  if (role == Role::world || is_flat) return "world";
  return fmt::format(
      "world/{}", role == Role::shard ? rank / way.shards() : way.replicas() + rank % way.shards());
}

namespace {

constexpr int64_t kParameters = 2 * kLayers + 3;

class Theory {
 public:
  explicit Theory(const Way& way) : way_(way), units_(flats_of_stack()) {
    is_whole_.resize(units_.size());
    is_kept_.resize(units_.size());
  }

  std::vector<Asked> all_passes() {
    for (const bool synchronize : way_.synchronize) pass(synchronize);
    return asked_;
  }

 private:
  void pass(bool synchronize) {
    averages_ = synchronize;
    const size_t root = units_.size() - 1;
    const bool gives_up = way_.gives_up_after_forward();
    gather(root);
    for (size_t unit = 0; unit < root; ++unit) {
      gather(unit);
      if (gives_up) is_whole_[unit] = false;
      is_kept_[unit] = way_.kept_by() > 1;
    }
    const bool reduces =
        synchronize || way_.options.accumulated_gradients == AccumulatedGradients::sharded;
    for (size_t unit = root; unit-- > 0;) {
      gather(unit);
      if (way_.options.backward_prefetch == BackwardPrefetch::pre && unit > 0) gather(unit - 1);
      if (gives_up || synchronize) is_whole_[unit] = false;
      if (way_.options.backward_prefetch == BackwardPrefetch::post && unit > 0) gather(unit - 1);
      if (reduces) reduce(unit);
    }
    if (gives_up || synchronize) is_whole_[root] = false;
    if (reduces) reduce(root);
    const int64_t used = kParameters * static_cast<int64_t>(sizeof(int));
    if (synchronize) asked_.push_back({Role::world, CollectiveKind::all_reduce, used, used});
    finish_reduction();
  }

  void gather(size_t unit) {
    if (way_.shards() == 1 || is_whole_[unit]) return;
    is_whole_[unit] = true;
    const bool is_kept = is_kept_[unit];
    is_kept_[unit] = false;
    for (const Flat& flat : units_[unit]) {
      const int64_t whole = flat.shard_bytes(way_.shards()) * way_.shards();
      const int64_t part = whole / (is_kept ? way_.kept_by() : way_.shards());
      asked_.push_back(
          {is_kept ? Role::neighbours : Role::shard, CollectiveKind::all_gather, part, whole});
    }
  }

  void reduce(size_t unit) {
    finish_reduction();
    reducing_ = unit;
    if (way_.shards() == 1) return;
    const int64_t whole = units_[unit].front().shard_bytes(way_.shards()) * way_.shards();
    // The host's reduce-scatter.
    asked_.push_back({Role::shard, CollectiveKind::all_to_all, whole, whole});
  }

  void finish_reduction() {
    const auto reduced = std::exchange(reducing_, std::nullopt);
    if (!reduced || !averages_ || way_.replicas() == 1) return;
    const int64_t part = units_[*reduced].front().shard_bytes(way_.shards());
    asked_.push_back({Role::replicate, CollectiveKind::all_reduce, part, part});
  }

  Way way_;
  std::vector<std::vector<Flat>> units_;
  std::vector<bool> is_whole_;
  std::vector<bool> is_kept_;  ///< By neighbours, since its forward pass.
  std::optional<size_t> reducing_;
  bool averages_ = false;
  std::vector<Asked> asked_;
};

}  // namespace

std::vector<Asked> asked_in_theory(const Way& way) { return Theory(way).all_passes(); }

Traffic traffic_in_theory(const Way& way) {
  Traffic traffic;
  const auto units = flats_of_stack();
  for (size_t i = 0; i < units.size(); ++i) {
    const bool is_root = i + 1 == units.size();
    const int64_t gathers = way.gives_up_after_forward() && !is_root ? 2 : 1;
    for (const Flat& flat : units[i]) {
      const int64_t part = flat.shard_bytes(way.shards());
      const int64_t whole = part * way.shards();
      if (way.shards() > 1) traffic.gathered += gathers * whole;
      if (way.shards() > 1 && flat.is_trained) traffic.scattered += whole;
      if (way.replicas() > 1 && flat.is_trained) traffic.averaged += part;
    }
  }
  return traffic;
}

}  // namespace phalanx::fsdp::testing
