// SPDX-License-Identifier: Apache-2.0
// Engines that synchronize batch normalization, against one rank on the joined batch.

#include "trainer/parallel/batch_norm/module_batch_norm.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/pass_models.h"
#include "tests/trainer/parallel/ways.h"
#include "trainer/api/modules.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using fsdp::testing::kWidth;
using fsdp::testing::Net;

constexpr double kTolerance = 1e-10;

/// Samples of a micro-batch, by rank.
using Samples = std::vector<int64_t>;

/// A model, its activations computed again where that is asked for.
struct Trained {
  explicit Trained(bool recomputes) {
    model.to(at::kDouble);
    if (recomputes) checkpoint_activations(model, {.policy = CheckpointedUnits::unit});
  }
  BatchNormed model;
};

int64_t sum_of(const Samples& samples, int64_t ranks) {
  return std::accumulate(samples.begin(), samples.begin() + ranks, int64_t{0});
}

/// Two micro-batches a step, of which the second one's backward pass reduces.
void require_as_joined(const Way& way, const std::vector<Samples>& micro_batches,
                       const Ranks& ranks) {
  seed_everything(3);
  Trained plain(way.recomputes);
  seed_everything(3);
  Trained trained(way.recomputes);
  const auto engine = way.wrap(trained.model, ranks);
  std::vector<NamedParameter> locals;
  for (const auto& parameter : parameters_of(trained.model)) {
    locals.push_back(engine->local(parameter));
  }
  const std::vector<NamedParameter> expected = parameters_of(plain.model);
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    const Samples& samples = micro_batches[i];
    const int64_t total = sum_of(samples, ranks.world_size());
    const int64_t own = samples[static_cast<std::size_t>(ranks.rank())];
    const at::Tensor rows = Net::wave({total, kWidth}, static_cast<double>(i));
    plain.model.loss(rows).backward();

    const bool is_last = i % 2 == 1;
    const at::Tensor loss = engine
                                ->run_tensors(
                                    [&] {
                                      return std::vector{trained.model.loss(
                                          rows.narrow(0, sum_of(samples, ranks.rank()), own))};
                                    },
                                    /*synchronize=*/is_last)
                                .front();
    // The mean over the ranks is one over all samples.
    loss.mul(static_cast<double>(own * ranks.world_size()) / static_cast<double>(total)).backward();

    const auto buffers = modules::named_buffers(trained.model);
    const auto of_plain = modules::named_buffers(plain.model);
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      require_close(buffers[b].second.to(at::kDouble),
                    of_plain[b].second.to(at::kDouble).reshape({-1}), kTolerance,
                    fmt::format("micro-batch {}, {}", i, buffers[b].first));
    }
    if (!is_last) continue;
    for (std::size_t p = 0; p < expected.size(); ++p) {
      const at::Tensor& found = locals[p].tensor.grad();
      const std::string what = fmt::format("step {}, the gradient of {}", i / 2, locals[p].name);
      require(found.defined(), what);
      require_close(found, part_of(expected[p].tensor.grad(), *locals[p].shard), kTolerance, what);
    }
    fsdp::testing::descend(locals);
    fsdp::testing::descend(expected);
  }
  for (std::size_t p = 0; p < expected.size(); ++p) {
    require_close(locals[p].tensor, part_of(expected[p].tensor, *locals[p].shard), kTolerance,
                  locals[p].name);
  }
}

void require_as_joined(const std::vector<Way>& ways, const std::vector<Samples>& micro_batches) {
  const auto processes = static_cast<int64_t>(micro_batches.front().size());
  const auto body = [&](World& world) {
    for (const Way& way : ways) {
      try {
        require_as_joined(way, micro_batches, world.ranks());
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(way.name + ": " + error.what());
      }
    }
  };
  EXPECT_EQ(in_ranks(processes, body), RankOutcome{});
}

// The last step ends unevenly, and in one micro-batch each a rank has no sample.
const std::vector<Samples> kOfTwo{{4, 4}, {3, 3}, {4, 2}, {3, 0}, {0, 5}, {2, 3}};
const std::vector<Samples> kOfFour{{2, 2, 2, 2}, {3, 2, 2, 0}, {2, 0, 5, 2}, {0, 3, 0, 2}};

// Without rank 0's buffers for all: the ranks' own have to be alike.
DdpOptions ddp_options() { return {.broadcast_buffers = false}; }

FsdpOptions fsdp_options() {
  FsdpOptions options;
  options.broadcast_buffers = false;
  return options;
}

Way synced_ddp(const std::string& name, const DdpOptions& options) {
  Way way = ddp(name, options);
  way.wrap = [options](fsdp::testing::AnyModel& model, const Ranks& ranks) {
    return prepare_ddp(model, ranks, options, /*sync_module_states=*/true, /*sync_batchnorm=*/true);
  };
  return way;
}

Way synced_fsdp(const std::string& name, ShardingStrategy strategy, const FsdpOptions& options) {
  Way way = fsdp_of(name, strategy, options);
  way.wrap = [=](fsdp::testing::AnyModel& model, const Ranks& ranks) {
    return prepare_fsdp(model, ranks, strategy, options, /*sync_module_states=*/true,
                        /*placement=*/{}, /*sync_batchnorm=*/true);
  };
  return way;
}

TEST(SyncBatchNorm, TrainsInDdpAsOneRankOnTheJoinedBatch) {
  DdpOptions unused = ddp_options(), with_buffers = ddp_options();
  unused.find_unused_parameters = true;
  with_buffers.broadcast_buffers = true;
  require_as_joined({synced_ddp("", ddp_options()), synced_ddp(", unused", unused),
                     synced_ddp(", buffers", with_buffers)},
                    kOfTwo);
}

TEST(SyncBatchNorm, TrainsInFsdpAsOneRankOnTheJoinedBatch) {
  FsdpOptions with_buffers = fsdp_options();
  with_buffers.broadcast_buffers = true;
  require_as_joined({synced_fsdp("", ShardingStrategy::full_shard, fsdp_options()),
                     synced_fsdp(", buffers", ShardingStrategy::full_shard, with_buffers),
                     synced_fsdp("", ShardingStrategy::shard_grad_op, fsdp_options()),
                     synced_fsdp("", ShardingStrategy::no_shard, fsdp_options())},
                    kOfTwo);
}

TEST(SyncBatchNorm, JoinsAllRanksInHybridStrategies) {
  FsdpOptions options = fsdp_options();
  options.mesh = {.replicate = 2, .shard = 2};
  require_as_joined({synced_fsdp(" of 2 x 2", ShardingStrategy::hybrid_shard, options),
                     synced_fsdp(" of 2 x 2", ShardingStrategy::hybrid_shard_zero2, options)},
                    kOfFour);
}

TEST(SyncBatchNorm, JoinsTheBatchesAgainWhereActivationsAreComputedAgain) {
  std::vector<Way> ways{synced_ddp("", ddp_options()),
                        synced_fsdp("", ShardingStrategy::full_shard, fsdp_options())};
  for (Way& way : ways) way.recomputes = true;
  require_as_joined(ways, kOfTwo);
}

// A rank without inputs would run no normalization.
TEST(SyncBatchNorm, IsRefusedInAJoinThatGoesOnWithoutARank) {
  const auto body = [](World& world) {
    Trained trained(/*recomputes=*/false);
    DistributedDataParallel engine(trained.model, world.ranks(), ddp_options(),
                                   /*sync_module_states=*/true, /*hook=*/nullptr,
                                   /*sync_batchnorm=*/true);
    bool is_refused = false;
    try {
      engine.join([] {});
    } catch (const std::logic_error&) {
      is_refused = true;
    }
    require(is_refused, "a join is refused");
    engine.join([] {}, {.throw_on_early_termination = true});
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

// Later, in the first pass, threads that read data would call operators meanwhile.
TEST(SyncBatchNorm, TakesOperatorsOverBeforeTheFirstPass) {
  const auto body = [](World& world) {
    const auto is_taken_over = [] {
      return c10::Dispatcher::singleton()
          .findSchemaOrThrow("aten::batch_norm", "")
          .hasKernelForDispatchKey(c10::DispatchKey::AutogradCPU);
    };
    require(!is_taken_over(), "LibTorch's own without an engine");
    Trained trained(/*recomputes=*/false);
    const auto engine = synced_ddp("", ddp_options()).wrap(trained.model, world.ranks());
    require(is_taken_over(), "ours with an engine");
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

// An evaluation is each rank's own: one makes it alone.
TEST(SyncBatchNorm, LeavesEvaluationsToEachRank) {
  const auto body = [](World& world) {
    Trained trained(/*recomputes=*/false);
    const auto engine = synced_ddp("", ddp_options()).wrap(trained.model, world.ranks());
    modules::set_training(trained.model, false);
    if (world.ranks().is_first()) {
      engine->use([&] { trained.model.loss(Net::wave({3, kWidth}, 1)); });
    }
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

}  // namespace
}  // namespace phalanx
