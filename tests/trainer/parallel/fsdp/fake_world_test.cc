// SPDX-License-Identifier: Apache-2.0
// What every rank of a large world asks of the others, in order, byte by byte: FSDP as it is, in a
// world whose other ranks are not there.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "tests/long.h"
#include "tests/trainer/parallel/fsdp/communication_theory.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/simulated/fake_ranks.h"

namespace phalanx::fsdp::testing {
namespace {

Traffic traffic_of(const std::vector<Collective>& collectives) {
  Traffic traffic;
  for (const auto& collective : collectives) {
    const bool is_flags = collective.dtype == at::kInt;
    if (collective.kind == CollectiveKind::all_gather) traffic.gathered += collective.output_bytes;
    if (collective.kind == CollectiveKind::all_to_all) traffic.scattered += collective.input_bytes;
    if (collective.kind == CollectiveKind::all_reduce && !is_flags) {
      traffic.averaged += collective.input_bytes;
    }
  }
  return traffic;
}

std::string to_text(const std::vector<Collective>& collectives) {
  std::string text;
  for (const auto& collective : collectives) text += to_string(collective) + "\n";
  return text;
}

/// Without what neighbours send each other to compare their ways (OrderCheck).
std::vector<Collective> collectives_of(const CollectiveLog& log) {
  std::vector<Collective> collectives = log.collectives();
  std::erase_if(collectives, [](const Collective& asked) {
    return asked.kind == CollectiveKind::send || asked.kind == CollectiveKind::receive;
  });
  return collectives;
}

/// Trains as rank after rank of one world.
class WorldCheck {
 public:
  explicit WorldCheck(Way way) : way_(std::move(way)), theory_(asked_in_theory(way_)) {}

  void train(int64_t rank) {
    const auto log = std::make_shared<CollectiveLog>();
    const Ranks ranks = fake_ranks(rank, way_.world_size, kHost, log);
    Stack stack(kWidths, kFrozenLayer);
    FullyShardedDataParallel fsdp(stack, ranks, way_.strategy, way_.options);
    const auto at_start = static_cast<std::ptrdiff_t>(collectives_of(*log).size());
    check_memory(fsdp);
    for (const bool synchronize : way_.synchronize) {
      fsdp.forward([&] { return stack.loss(); }, synchronize).backward();
    }
    const std::vector<Collective> all = collectives_of(*log);
    const std::vector<Collective> step(all.begin() + at_start, all.end());
    check_order(rank, step);
    check_traffic(step);
    compare_with_group(*log);
    roster_.add(rank, *log);
    trained_.insert(rank);
  }

  /// After the last rank: whether the groups that the ranks have found are those of the mesh.
  void check_groups() const {
    std::set<std::string> checked;
    for (const int64_t rank : trained_) {
      for (const Role role : {Role::world, Role::shard, Role::replicate, Role::neighbours}) {
        std::vector<int64_t> expected = members(way_, role, rank);
        const std::string name = group_name(way_, role, rank);
        if (expected.size() == 1 || !checked.insert(name).second) continue;
        for (int64_t& member : expected) {
          if (!trained_.contains(member)) member = GroupRoster::kUnknown;
        }
        ASSERT_EQ(roster_.members().at(name), expected) << name;
      }
    }
    ASSERT_EQ(roster_.members().size(), checked.size());
  }

 private:
  /// Before the first step parameters have no other memory.
  void check_memory(const FullyShardedDataParallel& fsdp) const {
    const auto units = flats_of_stack();
    const auto found = fsdp.summary();
    ASSERT_EQ(found.size(), units.size());
    for (size_t i = 0; i < units.size(); ++i) {
      int64_t resident = 0;
      int64_t parameters = 0;
      for (const Flat& flat : units[i]) {
        resident += flat.shard_bytes(way_.shards());
        parameters = std::accumulate(flat.tensors.begin(), flat.tensors.end(), parameters);
      }
      ASSERT_EQ(found[i].resident_bytes, resident) << found[i].name;
      ASSERT_EQ(found[i].whole_bytes, resident * way_.shards()) << found[i].name;
      ASSERT_EQ(found[i].parameters, parameters) << found[i].name;
    }
    std::set<const void*> storages;
    int64_t kept = 0;
    for (const auto& local : fsdp.local_parameters()) {
      const auto& storage = local.tensor.storage();
      if (storages.insert(storage.unsafeGetStorageImpl()).second) {
        kept += static_cast<int64_t>(storage.nbytes());
      }
    }
    int64_t resident = 0;
    for (const auto& unit : found) resident += unit.resident_bytes;
    ASSERT_EQ(kept, resident);
  }

  void check_order(int64_t rank, const std::vector<Collective>& step) const {
    std::vector<Collective> expected;
    for (const Asked& asked : theory_) {
      const bool reduces = asked.kind == CollectiveKind::all_reduce;
      const bool is_flags = reduces && asked.role == Role::world;
      expected.push_back({.kind = asked.kind,
                          .group = group_name(way_, asked.role, rank),
                          .input_bytes = asked.input_bytes,
                          .output_bytes = asked.output_bytes,
                          .dtype = is_flags ? at::kInt : at::kFloat});
      if (reduces) expected.back().reduction = is_flags ? Reduction::maximum : Reduction::sum;
    }
    if (step == expected) return;
    ASSERT_EQ(to_text(step), to_text(expected)) << "rank " << rank;
  }

  void check_traffic(const std::vector<Collective>& step) const {
    if (way_.synchronize.size() > 1) return;
    const Traffic found = traffic_of(step);
    const Traffic theory = traffic_in_theory(way_);
    ASSERT_EQ(found.gathered, theory.gathered);
    ASSERT_EQ(found.scattered, theory.scattered);
    ASSERT_EQ(found.averaged, theory.averaged);
  }

  /// All that has been asked of a group, from the start, is what its first rank asked of it.
  void compare_with_group(const CollectiveLog& log) {
    std::map<std::string, std::vector<Collective>> asked;
    for (const auto& collective : collectives_of(log)) {
      asked[collective.group].push_back(collective);
    }
    for (auto& [group, collectives] : asked) {
      const auto [first, is_first] = by_group_.try_emplace(group, collectives);
      if (is_first || first->second == collectives) continue;
      ASSERT_EQ(to_text(collectives), to_text(first->second));
    }
  }

  Way way_;
  std::vector<Asked> theory_;
  std::set<int64_t> trained_;
  GroupRoster roster_;
  std::map<std::string, std::vector<Collective>> by_group_;
};

/// At the first, second, middle or last place of both its groups.
bool is_corner(const Way& way, int64_t rank) {
  const auto is_chosen = [](int64_t place, int64_t size) {
    return place <= 1 || place == size / 2 || place == size - 1;
  };
  return is_chosen(rank % way.shards(), way.shards()) &&
         is_chosen(rank / way.shards(), way.replicas());
}

void check(const Way& way) {
  SCOPED_TRACE(to_string(way));
  WorldCheck world(way);
  for (int64_t rank = 0; rank < way.world_size; ++rank) {
    if (rank % way.every != 0 && !is_corner(way, rank)) continue;
    world.train(rank);
    if (::testing::Test::HasFatalFailure()) return;  // the others would say the same
  }
  world.check_groups();
}

/// Two worlds at a time: thousands of ranks take seconds.
void check(const std::vector<Way>& ways) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    at::set_num_threads(1);
    for (size_t i = next++; i < ways.size(); i = next++) {
      try {
        check(ways[i]);
      } catch (const std::exception& error) {  // would end the process on a thread of its own
        ADD_FAILURE() << to_string(ways[i]) << ": " << error.what();
      }
    }
  };
  const std::jthread other(work);
  work();
}

const std::vector<ShardingStrategy> kStrategies{
    ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op, ShardingStrategy::no_shard,
    ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2};

/// The strategies with the group sizes that they can have.
std::vector<Way> meshes(int64_t world_size) {
  std::vector<Way> ways;
  for (const auto strategy : kStrategies) {
    ways.push_back({.world_size = world_size, .strategy = strategy});
    if (!is_hybrid(strategy)) continue;
    for (const int64_t size : {int64_t{2}, world_size / 2}) {
      ways.push_back({.world_size = world_size, .strategy = strategy});
      ways.back().options.shard_group_size = size;
    }
  }
  return ways;
}

class FakeWorld : public ::testing::TestWithParam<int64_t> {
 protected:
  void TearDown() override {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
    fmt::print("a world of {}: {:.1f} s\n", GetParam(), took.count());
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

TEST_P(FakeWorld, AsksInOneOrderWhatTheorySays) {
  std::vector<Way> ways;
  for (const auto strategy : kStrategies) {
    ways.push_back({.world_size = GetParam(), .strategy = strategy});
    // All ranks of the largest world take part only where groups are of both kinds: that is most of
    // the test's time. A number that has no divisor in common with the groups' sizes leaves out
    // none.
    const bool all = strategy == ShardingStrategy::hybrid_shard || GetParam() < 4096;
    if (!all) ways.back().every = 7;
  }
  check(ways);
}

TEST_P(FakeWorld, GathersFromNeighboursWhatTheyHaveKept) {
  std::vector<Way> ways;
  for (const auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::hybrid_shard}) {
    for (const bool synchronize : {true, false}) {
      Way way{.world_size = GetParam(), .strategy = strategy};
      way.options.reshard_after_forward = int64_t{4};
      way.synchronize = {synchronize, true};
      way.every = GetParam() < 4096 ? 1 : 7;
      ways.push_back(std::move(way));
    }
  }
  check(ways);
}

TEST_P(FakeWorld, AccumulatesGradientsInEveryMesh) {
  std::vector<Way> ways;
  for (Way way : meshes(GetParam())) {
    way.synchronize = {false, true, true};
    way.every = GetParam();
    for (const auto kind : {AccumulatedGradients::whole, AccumulatedGradients::sharded}) {
      way.options.accumulated_gradients = kind;
      ways.push_back(way);
    }
  }
  check(ways);
}

INSTANTIATE_TEST_SUITE_P(Fsdp, FakeWorld,
                         ::testing::ValuesIn(sample_of(std::vector<int64_t>{8, 64, 512, 4096}, 3,
                                                       "sizes of a world")),
                         ::testing::PrintToStringParamName());

TEST(SmallFakeWorld, AsksInOneOrderHoweverItPrefetches) {
  std::vector<Way> ways;
  for (Way way : meshes(16)) {
    way.synchronize = {false, true, true};
    for (const std::optional<BackwardPrefetch> prefetch :
         {std::optional<BackwardPrefetch>(), std::optional(BackwardPrefetch::pre),
          std::optional(BackwardPrefetch::post)}) {
      for (const bool forward : {false, true}) {
        way.options.backward_prefetch = prefetch;
        way.options.forward_prefetch = forward;
        ways.push_back(way);
      }
    }
  }
  check(ways);
}

TEST(SmallFakeWorld, PrefetchesNothingWhereTheConfigSaysNullOrNone) {
  for (const char* word : {"null", "none"}) {
    config::Diagnostics diagnostics;
    const config::Node given =
        config::parse_yaml(fmt::format("backward_prefetch: {}", word), "test.yaml", diagnostics);
    const config::Node resolved =
        config::resolve(config::declaration<FsdpOptions>(), given, diagnostics);
    ASSERT_TRUE(diagnostics.empty()) << diagnostics.text();
    const Way way{.world_size = 4, .options = config::read<FsdpOptions>(resolved)};
    EXPECT_FALSE(way.options.backward_prefetch.has_value()) << word;
    check({way});
  }
}

/// What Net asks over three steps, a group's name by its kind: as all ranks must ask.
std::vector<Collective> asked_by_net(const Way& way, int64_t rank) {
  const auto log = std::make_shared<CollectiveLog>();
  const Ranks ranks = fake_ranks(rank, way.world_size, kHost, log);
  Net net;
  FullyShardedDataParallel fsdp(net, ranks, way.strategy, way.options);
  const at::Tensor input = Net::wave({3, kInputs}, static_cast<double>(rank)).to(at::kFloat);
  for (const Pass& pass : {Pass{}, Pass{.with_optional = false, .calls_twice = true}, Pass{}}) {
    fsdp.forward([&] { return net.loss(input, pass); }).backward();
  }
  std::vector<Collective> asked = collectives_of(*log);
  for (auto& collective : asked) {
    const bool is_shard = collective.group == group_name(way, Role::shard, rank);
    if (collective.group != "world") collective.group = is_shard ? "shard" : "replicate";
  }
  return asked;
}

TEST(SmallFakeWorld, AsksInOneOrderForAModelWithEverything) {
  for (const Way& way : meshes(16)) {
    SCOPED_TRACE(to_string(way));
    const auto expected = asked_by_net(way, 0);
    for (int64_t rank = 1; rank < way.world_size; ++rank) {
      ASSERT_EQ(to_text(asked_by_net(way, rank)), to_text(expected)) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace phalanx::fsdp::testing
