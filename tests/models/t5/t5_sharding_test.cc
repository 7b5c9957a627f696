// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/models/t5/registered_t5.h"
#include "tests/tensors.h"
#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/parameters.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/precision/autocast.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

constexpr int64_t kRanks = 2;
constexpr int kSteps = 3;

// Threads of several ranks on the same cores wait for each other longer than they compute.
std::string failure(const std::function<void(const Ranks&)>& body) {
  return in_ranks(kRanks,
                  [&](World& world) {
                    at::set_num_threads(1);
                    body(world.ranks());
                  })
      .message;
}

at::Tensor tokens(int64_t phase, int64_t length) {
  return tensors::arange(phase, phase + 2 * length).mul(7).remainder(61).view({2, length});
}

// The loss of two pairs, the second's inputs padded at the end; other pairs on each rank and step.
at::Tensor loss(RegisteredT5& model, int64_t rank, int step) {
  const int64_t phase = step * 31 + rank * 13;
  const at::Tensor inputs = tokens(phase, 9);
  const at::Tensor mask = inputs.ge(0);
  mask.select(0, 1).narrow(0, 6, 3).fill_(false);
  const at::Tensor logits = model.logits(inputs, mask, tokens(phase + 3, 5));
  return tensors::cross_entropy(logits.flatten(0, 1).to(at::kDouble),
                                tokens(phase + 4, 5).flatten());
}

t5::Config config_of(bool is_gated) {
  t5::Config config = is_gated ? tiny_t5_v1_1() : tiny_t5();
  config.dropout_rate = 0;
  return config;
}

RegisteredT5 seeded(bool is_gated) {
  seed_everything(3);
  return RegisteredT5(config_of(is_gated));
}

// The whole batch on one rank.
RegisteredT5 trained_plainly(bool is_gated, at::ScalarType dtype) {
  RegisteredT5 model = seeded(is_gated);
  if (dtype == at::kDouble) to_double(model);
  for (int step = 0; step < kSteps; ++step) {
    for (int64_t rank = 0; rank < kRanks; ++rank) loss(model, rank, step).div(kRanks).backward();
    fsdp::testing::descend(named_parameters(model));
  }
  return model;
}

void require_same(const std::vector<NamedParameter>& found, RegisteredT5& plain, double limit) {
  const auto expected = named_parameters(plain);
  require(found.size() == expected.size(), "as many parameters");
  for (size_t i = 0; i < found.size(); ++i) {
    const at::Tensor whole = expected[i].tensor.detach().view(-1);
    const int64_t begin = found[i].shard ? found[i].shard->begin : 0;
    const int64_t end = found[i].shard ? found[i].shard->end : whole.numel();
    if (begin == end) continue;
    const double most = found[i]
                            .tensor.detach()
                            .view(-1)
                            .sub(whole.slice(0, begin, end))
                            .abs()
                            .max()
                            .item<double>();
    const double scale = whole.abs().max().item<double>();
    require(most <= limit * scale, fmt::format("{}: {} of {}", found[i].name, most, scale));
  }
}

TEST(T5Sharding, DdpTrainsAsOneRankOnTheWholeBatch) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              RegisteredT5 plain = trained_plainly(false, at::kDouble);
              RegisteredT5 model = seeded(false);
              to_double(model);
              const auto ddp = prepare_ddp(model.module(), ranks);
              for (int step = 0; step < kSteps; ++step) {
                ddp->forward([&] { return loss(model, ranks.rank(), step); }).backward();
                fsdp::testing::descend(named_parameters(model));
              }
              require_same(named_parameters(model), plain, 1e-12);
            }),
            "");
}

struct Way {
  bool is_gated = false;
  bool recomputes = false;  ///< Activations, in the backward pass.
  bool defers = false;      ///< Its initial values.
  std::vector<std::string> names;
};

void train_sharded(const Way& way, const Ranks& ranks) {
  RegisteredT5 plain = trained_plainly(way.is_gated, at::kFloat);
  std::unique_ptr<RegisteredT5> model;
  const auto build = [&] { model = std::make_unique<RegisteredT5>(config_of(way.is_gated)); };
  seed_everything(3);
  ModelPlacement placement;
  if (way.defers) {
    placement.deferred_init = DeferredInit::record(build);
  } else {
    build();
  }
  FsdpOptions options;
  if (!way.names.empty()) {
    options.auto_wrap = {.policy = WrapPolicy::by_name, .min_params = 1, .names = way.names};
  }
  const auto sharded = prepare_fsdp(model->module(), ranks, ShardingStrategy::full_shard, options,
                                    /*sync_module_states=*/true, placement);
  if (way.recomputes) checkpoint_activations(model->module(), {.policy = CheckpointedUnits::unit});
  for (int step = 0; step < kSteps; ++step) {
    sharded->forward([&] { return loss(*model, ranks.rank(), step); }).backward();
    fsdp::testing::descend(sharded->local_parameters());
  }
  require_same(sharded->local_parameters(), plain, 1e-5);
}

TEST(T5Sharding, FullShardTrainsAsOneRankOnTheWholeBatch) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              train_sharded({.names = {"T5Block"}}, ranks);
              train_sharded({.recomputes = true, .defers = true}, ranks);
              train_sharded({.is_gated = true, .recomputes = true}, ranks);
              // The table of positions goes with the root, its blocks are sharded.
              train_sharded({.names = {"*.block.1"}}, ranks);
            }),
            "");
}

TEST(T5Sharding, LowPrecisionIsNearSinglePrecision) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              RegisteredT5 exact = seeded(false);
              const double expected = loss(exact, ranks.rank(), 0).item<double>();
              RegisteredT5 model = seeded(false);
              FsdpOptions options;
              options.mixed_precision.param_dtype = LowPrecision::bfloat16;
              const auto sharded =
                  prepare_fsdp(model.module(), ranks, ShardingStrategy::full_shard, options);
              const at::Tensor found =
                  sharded->forward([&] { return loss(model, ranks.rank(), 0); });
              found.backward();
              require(std::abs(found.item<double>() / expected - 1) < 0.02,
                      fmt::format("{} is {}", found.item<double>(), expected));
              for (const auto& parameter : sharded->local_parameters()) {
                require(parameter.tensor.grad().isfinite().all().item<bool>(), parameter.name);
              }
            }),
            "");
}

TEST(T5Sharding, AutocastIsNearSinglePrecision) {
  RegisteredT5 model = seeded(true);
  const double expected = loss(model, 0, 0).item<double>();
  at::Tensor found;
  {
    const Autocast autocast(AutocastTo{.dtype = at::kBFloat16});
    found = loss(model, 0, 0);
  }
  found.backward();
  EXPECT_NEAR(found.item<double>() / expected, 1, 0.02);
}

}  // namespace
}  // namespace phalanx
