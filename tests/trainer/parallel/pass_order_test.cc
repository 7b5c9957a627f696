// SPDX-License-Identifier: Apache-2.0
// Forward and backward passes in any order, in DDP and in FSDP, against one rank.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/long.h"
#include "tests/trainer/parallel/beside_one_rank.h"
#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/pass_cases.h"
#include "tests/trainer/parallel/pass_models.h"
#include "tests/trainer/parallel/ways.h"
#include "trainer/api/parallel_engine.h"

namespace phalanx {
namespace {

using fsdp::testing::Net;
using fsdp::testing::Staged;
using ::testing::HasSubstr;

constexpr int64_t kRounds = 2;

Way on_four(Way way) {
  way.ranks = 4;
  return way;
}

Way recomputing(Way way) {
  way.name += ", recomputing";
  way.recomputes = true;
  return way;
}

std::vector<Way> ways() {
  using enum ShardingStrategy;
  FsdpOptions single;
  single.mixed_precision.param_dtype = LowPrecision::float32;
  Way in_single = fsdp_of(", float32", full_shard, single);
  in_single.tolerance = 1e-4;
  FsdpOptions groups;
  groups.shard_group_size = 2;
  FsdpOptions post;
  post.backward_prefetch = BackwardPrefetch::post;
  FsdpOptions eager;
  eager.backward_prefetch.reset();
  eager.forward_prefetch = true;
  FsdpOptions neighbours;
  neighbours.reshard_after_forward = int64_t{2};
  FsdpOptions sharded;
  sharded.accumulated_gradients = AccumulatedGradients::sharded;
  return {
      ddp("", {.find_unused_parameters = true}),
      fsdp_of("", full_shard),
      fsdp_of("", shard_grad_op),
      fsdp_of("", no_shard),
      on_four(fsdp_of("", hybrid_shard, groups)),
      recomputing(fsdp_of("", full_shard)),
      ddp(", small buckets", {.bucket_cap_mb = 1e-3, .find_unused_parameters = true}),
      ddp(", views of buckets", {.find_unused_parameters = true, .gradient_as_bucket_view = true}),
      recomputing(ddp("", {.find_unused_parameters = true})),
      on_four(fsdp_of("", hybrid_shard_zero2, groups)),
      on_four(fsdp_of(", kept by two", full_shard, neighbours)),
      fsdp_of(", offloaded", full_shard, {}, /*cpu_offload=*/true),
      fsdp_of(", offloaded", shard_grad_op, {}, /*cpu_offload=*/true),
      fsdp_of(", prefetching after", full_shard, post),
      fsdp_of(", prefetching forward", full_shard, eager),
      fsdp_of(", accumulating shards", full_shard, sharded),
      fsdp_of(", accumulating shards", shard_grad_op, sharded),
      in_single};
}

at::Tensor loss_of(Net& net, double phase, bool is_whole, at::ScalarType dtype) {
  const at::Tensor rows = Net::wave({3, fsdp::testing::kInputs}, phase).to(dtype);
  return net.loss(rows, {.with_optional = is_whole, .calls_twice = true}).to(at::kDouble);
}

at::Tensor loss_of(Staged& net, double phase, bool /*is_whole*/, at::ScalarType dtype) {
  return net.loss(Net::wave({3, fsdp::testing::kWidth}, phase).to(dtype));
}

at::Tensor loss_of(BatchNormed& net, double phase, bool /*is_whole*/, at::ScalarType dtype) {
  return net.loss(Net::wave({3, fsdp::testing::kWidth}, phase).to(dtype));
}

/// Losses of the batches of a rank in a round.
template <class Model>
LossOf losses(Model& model, int64_t round, int64_t rank, at::ScalarType dtype = at::kDouble) {
  return [&model, round, rank, dtype](int64_t i, bool is_whole) {
    return loss_of(model, static_cast<double>(40 * round + 4 * i + rank), is_whole, dtype);
  };
}

/// Runs all cases one after the other, each `kRounds` times, with an update after each.
template <class Model>
void require_as_on_one_rank(const Way& way, const Ranks& ranks) {
  BesideOneRank<Model> both(way, ranks);
  const at::ScalarType dtype = both.engine->input_dtype().value_or(at::kDouble);
  for (const PassCase& of : pass_cases()) {
    for (int64_t round = 0; round < kRounds; ++round) {
      for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
        of.run(plain_runner(), losses(both.plain, round, rank));
      }
      both.divide_expected_gradients();
      of.run(runner_of(*both.engine), losses(both.model, round, ranks.rank(), dtype));
      both.require_gradients(way.tolerance, fmt::format("{}, round {}", of.name, round));
      both.descend();
      for (size_t i = 0; i < both.expected.size(); ++i) {
        const NamedParameter& local = both.locals[i];
        require_close(local.tensor, part_of(both.expected[i].tensor, *local.shard),
                      10 * way.tolerance, of.name + ": " + local.name);
      }
    }
  }
}

TEST(PassOrder, LeavesTheGradientsOfOneRank) {
  for (const Way& way : sample_of(ways(), 6, "ways to train")) {
    const auto body = [&](World& world) { require_as_on_one_rank<Net>(way, world.ranks()); };
    EXPECT_EQ(in_ranks(way.ranks, body), RankOutcome{}) << way.name;
  }
}

// Where every parameter gets a gradient in every pass.
TEST(PassOrder, NeedsNoSearchForUnusedParameters) {
  const std::vector<Way> plain{ddp("", {}),
                               ddp(", views of buckets", {.gradient_as_bucket_view = true}),
                               recomputing(fsdp_of("", ShardingStrategy::full_shard))};
  for (const Way& way : plain) {
    const auto body = [&](World& world) { require_as_on_one_rank<Staged>(way, world.ranks()); };
    EXPECT_EQ(in_ranks(way.ranks, body), RankOutcome{}) << way.name;
  }
}

// A pass broadcasts rank 0's buffers, which the backward pass of one before it needs.
TEST(PassOrder, LeavesBuffersToTheBackwardPass) {
  for (const Way& way : {ddp("", {}), fsdp_of("", ShardingStrategy::full_shard)}) {
    const auto body = [&](World& world) {
      at::set_num_threads(1);  // a thread for each channel would only wait for the others
      require_as_on_one_rank<BatchNormed>(way, world.ranks());
    };
    EXPECT_EQ(in_ranks(way.ranks, body), RankOutcome{}) << way.name;
  }
}

/// What a case's passes throw on both ranks.
template <class Model>
std::string refusal(
    const Way& way,
    const std::function<void(const PassRunner& runner, const LossOf& loss, Model&)>& run) {
  const auto body = [&](World& world) {
    Model model;
    model.to(at::kDouble);
    const auto engine = way.wrap(model, world.ranks());
    std::string message = "none";
    try {
      run(runner_of(*engine), losses(model, 0, world.ranks().rank()), model);
    } catch (const std::logic_error& error) {
      message = error.what();
    }
    const auto messages = world.ranks().all_gather(message);
    throw std::runtime_error(messages[0] == messages[1] ? messages[0] : "other errors");
  };
  return in_ranks(2, body).message;
}

TEST(PassOrder, OfAStaticGraphIsThatOfOnePass) {
  EXPECT_THAT((refusal<Staged>(ddp("", {.static_graph = true}),
                               [](const PassRunner& runner, const LossOf& loss, Staged&) {
                                 pass_cases().front().run(runner, loss);
                               })),
              HasSubstr("parallel.ddp.static_graph is for steps"));
}

TEST(PassOrder, NamesAParameterThatHasNoGradient) {
  EXPECT_THAT((refusal<Net>(ddp("", {}), [](const PassRunner& runner, const LossOf& loss,
                                            Net&) { pass_cases().front().run(runner, loss); })),
              HasSubstr("set parallel.ddp.find_unused_parameters"));
}

TEST(PassOrder, EndsWhereTheWeightsMove) {
  const auto way = fsdp_of("", ShardingStrategy::full_shard);
  const auto body = [&](World& world) {
    Net net;
    net.to(at::kDouble);
    const auto engine = way.wrap(net, world.ranks());
    const PassRunner runner = runner_of(*engine);
    const LossOf loss = losses(net, 0, world.ranks().rank());
    const at::Tensor early = runner.forward([&] { return loss(0, true); }, true);
    runner.forward([&] { return loss(1, true); }, true).backward();
    std::vector<NamedParameter> locals;
    for (const auto& parameter : parameters_of(net)) locals.push_back(engine->local(parameter));
    fsdp::testing::descend(locals);
    std::string message = "none";
    try {
      early.backward();
    } catch (const std::logic_error& error) {
      message = error.what();
    }
    require(message.find("after which the weights of unit") != std::string::npos, message);
    runner.forward([&] { return loss(2, true); }, true).backward();
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

// As where a critic moves between the passes of what it judges.
TEST(PassOrder, GoesOnWhereOtherUnitsHaveMoved) {
  const auto way = fsdp_of("", ShardingStrategy::full_shard);
  const auto body = [&](World& world) {
    Net net;
    net.to(at::kDouble);
    const auto engine = way.wrap(net, world.ranks());
    const LossOf loss = losses(net, 0, world.ranks().rank());
    const at::Tensor early =
        runner_of(*engine).forward([&] { return loss(0, /*is_whole=*/false); }, true);
    size_t moved = 0;
    for (const auto& parameter : parameters_of(net)) {
      if (!parameter.name.starts_with("optional.")) continue;
      const at::NoGradGuard no_grad;
      engine->local(parameter).tensor.add_(1);
      ++moved;
    }
    require(moved > 0, "a unit that the pass has not called");
    early.backward();
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

}  // namespace
}  // namespace phalanx
