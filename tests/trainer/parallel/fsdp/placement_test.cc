// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/tensors/random.h"

namespace phalanx::fsdp::testing {
namespace {

std::string failure(int64_t processes, const std::function<void(const Ranks&)>& body) {
  return in_ranks(processes, [&](World& world) { body(world.ranks()); }).message;
}

ModelPlacement deferred(std::shared_ptr<Drawn>& net, uint64_t seed) {
  seed_everything(seed);
  return {.deferred_init = DeferredInit::record([&] { net = std::make_shared<Drawn>(); })};
}

void require_parts_of(const Drawn& eager, const FullyShardedDataParallel& fsdp) {
  const auto expected = eager.named_parameters();
  for (const auto& local : fsdp.local_parameters()) {
    const ShardRange& shard = *local.shard;
    const at::Tensor whole = expected[local.name].detach().view(-1);
    require(local.tensor.detach().equal(
                whole.slice(0, shard.begin, shard.end).to(local.tensor.scalar_type())),
            local.name);
  }
}

TEST(Placement, DrawsDeferredValuesStraightIntoShardsBitwiseAsEagerly) {
  EXPECT_EQ(
      failure(
          2,
          [](const Ranks& ranks) {
            seed_everything(11);
            Drawn eager;
            for (const auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::no_shard}) {
              for (const bool sync : {true, false}) {
                std::shared_ptr<Drawn> net;
                FsdpOptions options;
                options.ignored_modules = {"blocks.1"};
                const auto placement = deferred(net, 11);
                const FullyShardedDataParallel fsdp(*net, ranks, strategy, options, sync,
                                                    placement);
                require_parts_of(eager, fsdp);
                require(net->scale().equal(eager.scale()), "a buffer");
              }
            }
          }),
      "");
}

TEST(Placement, BringsRankZerosDeferredValuesToAll) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      seed_everything(11);
                      Drawn of_first;
                      std::shared_ptr<Drawn> net;
                      const auto placement =
                          deferred(net, 11 + static_cast<uint64_t>(ranks.rank()));
                      const FullyShardedDataParallel fsdp(*net, ranks, ShardingStrategy::full_shard,
                                                          {}, true, placement);
                      require_parts_of(of_first, fsdp);
                    }),
            "");
}

TEST(Placement, MakesShardsOfTheWantedPrecision) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      seed_everything(11);
                      Drawn eager;
                      std::shared_ptr<Drawn> net;
                      auto placement = deferred(net, 11);
                      placement.dtype = at::kDouble;
                      const FullyShardedDataParallel fsdp(*net, ranks, ShardingStrategy::full_shard,
                                                          {}, true, placement);
                      require_parts_of(eager, fsdp);
                      require(fsdp.local_parameters().front().tensor.scalar_type() == at::kDouble,
                              "shards");
                      require(net->embedding().scalar_type() == at::kDouble, "parameters");
                      require(net->scale().scalar_type() == at::kDouble, "buffers");
                    }),
            "");
}

TEST(Placement, TellsWhatIsHeld) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Drawn net;
                      const FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard,
                                                          {});
                      int64_t resident = 0;
                      for (const auto& unit : fsdp.summary()) resident += unit.resident_bytes;
                      const auto uses = fsdp.memory();
                      require(uses.front().what == "parameters, this rank's part", "the first");
                      require(uses.front().bytes == resident, "the shards of all units");
                      for (const auto& use : uses) {
                        require(!use.what.starts_with("parameters, gathered"), use.what);
                      }
                    }),
            "");
}

}  // namespace
}  // namespace phalanx::fsdp::testing
