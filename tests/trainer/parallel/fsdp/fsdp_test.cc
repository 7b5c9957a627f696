// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/fsdp.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/long.h"
#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/gathered.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/clip.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp::testing {
namespace {

constexpr int kSteps = 6;

/// One way to train the net.
struct Way {
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  FsdpOptions options;
  int64_t micro_batches = 1;
  at::ScalarType dtype = at::kFloat;
  bool recomputes = false;  ///< Activations, in the backward pass.
};

at::Tensor input(int step, int64_t micro_batch, int64_t rank, at::ScalarType dtype) {
  const auto phase = static_cast<double>(step * 31 + micro_batch * 7 + rank);
  return Net::wave({3, kInputs}, phase).to(dtype);
}

/// The first micro-batch of a step may use other units than the last.
Pass pass_of(int step, int64_t micro_batch) {
  return {.with_optional = step % 3 == 0 || (step % 3 == 1 && micro_batch == 0),
          .calls_twice = step % 2 == 0};
}

std::vector<NamedParameter> plain_parameters(Net& net) {
  std::vector<NamedParameter> parameters;
  std::map<const at::TensorImpl*, bool> seen;
  for (const auto& item : net.named_parameters()) {
    if (seen.emplace(item.value().unsafeGetTensorImpl(), true).second) {
      parameters.push_back({item.key(), item.value()});
    }
  }
  return parameters;
}

/// The whole batch on one rank.
double train_plain(Net& net, const Way& way, int64_t ranks, int step) {
  const auto passes = static_cast<double>(ranks * way.micro_batches);
  for (int64_t m = 0; m < way.micro_batches; ++m) {
    for (int64_t r = 0; r < ranks; ++r) {
      net.loss(input(step, m, r, way.dtype), pass_of(step, m)).div(passes).backward();
    }
  }
  const double norm = gradient_norm(gradients_of(plain_parameters(net))).item().toDouble();
  descend(plain_parameters(net));
  return norm;
}

double train_sharded(Net& net, FullyShardedDataParallel& fsdp, const Way& way, const Ranks& ranks,
                     int step) {
  for (int64_t m = 0; m < way.micro_batches; ++m) {
    const at::Tensor loss = fsdp.forward(
        [&] { return net.loss(input(step, m, ranks.rank(), way.dtype), pass_of(step, m)); },
        /*synchronize=*/m + 1 == way.micro_batches);
    loss.div(static_cast<double>(way.micro_batches)).backward();
  }
  const double norm = fsdp.gradient_norm(fsdp.local_parameters()).item().toDouble();
  descend(fsdp.local_parameters());
  return norm;
}

double difference(const std::vector<NamedParameter>& local,
                  const std::vector<NamedParameter>& plain) {
  double most = 0;
  require(local.size() == plain.size(), "as many parameters");
  for (size_t i = 0; i < plain.size(); ++i) {
    require(local[i].name == plain[i].name, local[i].name + " is " + plain[i].name);
    const ShardRange& shard = *local[i].shard;
    const at::Tensor expected = plain[i].tensor.detach().view(-1).slice(0, shard.begin, shard.end);
    if (expected.numel() == 0) continue;
    most = std::max(most, local[i].tensor.detach().sub(expected).abs().max().item().toDouble());
  }
  return most;
}

/// Nothing that is sharded has memory for the whole now.
void require_freed(Net& net, const FullyShardedDataParallel& fsdp) {
  require(gathered_units(fsdp).empty(), "units are freed");
  for (const auto& item : net.named_parameters()) {
    const ShardRange shard = *fsdp.local({item.key(), item.value()}).shard;
    const bool is_cut = shard.end - shard.begin < item.value().numel();
    require(!is_cut || is_given_up(item.value()), item.key() + " is given up");
  }
}

void train_both(const Way& way, const Ranks& ranks) {
  Net plain;
  Net net;
  plain.to(way.dtype);
  net.to(way.dtype);
  FullyShardedDataParallel fsdp(net, ranks, way.strategy, way.options);
  if (way.recomputes) checkpoint_activations(net, {.policy = CheckpointedUnits::unit});
  const double tolerance = way.dtype == at::kDouble ? 1e-13 : 1e-6;
  for (int step = 0; step < kSteps; ++step) {
    const double expected = train_plain(plain, way, ranks.world_size(), step);
    const double norm = train_sharded(net, fsdp, way, ranks, step);
    require(std::abs(norm - expected) < tolerance * 10,
            fmt::format("step {}: gradient norm {} is {}", step, norm, expected));
    require_freed(net, fsdp);
  }
  const double most = difference(fsdp.local_parameters(), plain_parameters(plain));
  require(most < tolerance, fmt::format("weights differ by at most {}: {}", tolerance, most));
}

std::string failure(int64_t processes, const std::function<void(const Ranks&)>& body) {
  return in_ranks(processes, [&](World& world) { body(world.ranks()); }).message;
}

const std::vector<ShardingStrategy> kStrategies{
    ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op, ShardingStrategy::no_shard,
    ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2};

// Any two choices meet in the first half.
std::vector<Way> ways(ShardingStrategy strategy) {
  std::vector<Way> ways;
  std::vector<Way> second_half;
  for (const int64_t micro_batches : {1, 3}) {
    for (const auto accumulated : {AccumulatedGradients::whole, AccumulatedGradients::sharded}) {
      for (const std::optional<BackwardPrefetch> prefetch :
           {std::optional(BackwardPrefetch::pre), std::optional(BackwardPrefetch::post),
            std::optional<BackwardPrefetch>()}) {
        Way way{.strategy = strategy, .options = {}, .micro_batches = micro_batches};
        way.options.accumulated_gradients = accumulated;
        way.options.backward_prefetch = prefetch;
        way.options.forward_prefetch = prefetch == BackwardPrefetch::pre;
        way.dtype = prefetch ? at::kFloat : at::kDouble;
        way.recomputes = (micro_batches == 3) == prefetch.has_value();
        const size_t place = ways.size() + second_half.size() + (micro_batches == 3 ? 1 : 0);
        (place % 2 == 0 ? ways : second_half).push_back(std::move(way));
      }
    }
  }
  ways.insert(ways.end(), second_half.begin(), second_half.end());
  return sample_of(std::move(ways), second_half.size(), "ways to train");
}

class EveryStrategy : public ::testing::TestWithParam<ShardingStrategy> {};

TEST_P(EveryStrategy, TrainsAsOneRankOnTheWholeBatch) {
  const std::vector<Way> sample = ways(GetParam());
  EXPECT_EQ(failure(2,
                    [&](const Ranks& ranks) {
                      for (const Way& way : sample) train_both(way, ranks);
                    }),
            "");
}

TEST_P(EveryStrategy, TrainsAsOneRankOnFourRanksInEveryMesh) {
  const std::vector<Way> sample = ways(GetParam());
  EXPECT_EQ(failure(4,
                    [&](const Ranks& ranks) {
                      for (Way way : sample) {
                        if (way.dtype != at::kDouble) continue;
                        train_both(way, ranks);
                        for (const int64_t size : {1, 2}) {
                          if (!is_hybrid(GetParam())) continue;
                          way.options.shard_group_size = size;
                          train_both(way, ranks);
                        }
                      }
                    }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Fsdp, EveryStrategy, ::testing::ValuesIn(kStrategies),
                         [](const auto& info) {
                           std::string name(to_string(info.param));
                           std::erase(name, '_');
                           return name;
                         });

TEST(Fsdp, ShardsWhateverIsChosen) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Way way;
                      way.options.auto_wrap.policy = WrapPolicy::none;
                      train_both(way, ranks);
                      way.options.auto_wrap = {
                          .policy = WrapPolicy::by_name, .min_params = 1, .names = {"Nest"}};
                      train_both(way, ranks);
                      way.options.auto_wrap = {
                          .policy = WrapPolicy::size, .min_params = 160, .names = {}};
                      train_both(way, ranks);
                      way.options.auto_wrap = {};
                      way.options.ignored_modules = {"second", "nest.block"};
                      train_both(way, ranks);
                    }),
            "");
}

TEST(Fsdp, ShardsOverTheHostWhereHybridGroupsAreNotGiven) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net net;
                      const auto fsdp = prepare_fsdp(net, ranks, ShardingStrategy::hybrid_shard);
                      for (const auto& unit : fsdp->summary()) {
                        require(unit.resident_bytes * 2 == unit.whole_bytes, unit.name);
                      }
                    }),
            "");
}

TEST(Fsdp, BringsRankZerosValuesToAll) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net plain;
                      for (const bool sync_module_states : {true, false}) {
                        Net net;
                        {
                          const at::NoGradGuard no_grad;
                          for (auto& p : net.parameters()) {
                            p.add_(static_cast<double>(ranks.rank()));
                          }
                        }
                        const FullyShardedDataParallel fsdp(
                            net, ranks, ShardingStrategy::full_shard, {}, sync_module_states);
                        const bool are_rank_zeros =
                            difference(fsdp.local_parameters(), plain_parameters(plain)) == 0;
                        require(are_rank_zeros == (sync_module_states || ranks.is_first()),
                                sync_module_states ? "rank 0's" : "each rank's own");
                      }
                    }),
            "");
}

TEST(Fsdp, SummonsWholeParametersForALook) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net plain;
                      Net net;
                      const auto fsdp = prepare_fsdp(net, ranks);
                      const auto expected = plain_parameters(plain);
                      fsdp->summon_full_params([&] {
                        const auto whole = plain_parameters(net);
                        for (size_t i = 0; i < whole.size(); ++i) {
                          require(whole[i].tensor.equal(expected[i].tensor), whole[i].name);
                        }
                      });
                      require_freed(net, *fsdp);
                      fsdp->summon_full_params(
                          [&] {
                            const at::NoGradGuard no_grad;
                            for (auto& p : net.parameters()) {
                              p.fill_(static_cast<double>(ranks.rank() + 5));
                            }
                          },
                          /*write_back=*/true);
                      fsdp->summon_full_params([&] {
                        for (const auto& p : net.parameters()) {
                          require(p.eq(5).all().item<bool>(), "rank 0's writing is everybody's");
                        }
                      });
                    }),
            "");
}

TEST(Fsdp, ComputesWithoutGradientsInBetween) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      for (const auto strategy : kStrategies) {
                        Net plain;
                        Net net;
                        const Way way{.strategy = strategy, .options = {}};
                        FullyShardedDataParallel fsdp(net, ranks, strategy, {});
                        for (int step = 0; step < 3; ++step) {
                          train_plain(plain, way, ranks.world_size(), step);
                          train_sharded(net, fsdp, way, ranks, step);
                          const at::NoGradGuard no_grad;
                          const at::Tensor rows = input(9, 0, ranks.rank(), at::kFloat);
                          const at::Tensor expected = plain.loss(rows, {});
                          const at::Tensor found =
                              fsdp.forward([&] { return net.loss(rows, {}); }, false);
                          require(found.sub(expected).abs().item().toDouble() < 1e-6,
                                  "the loss is that of the weights after the step");
                          require_freed(net, fsdp);
                        }
                      }
                    }),
            "");
}

TEST(Fsdp, GoesOnAfterABackwardPassThatThrew) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net plain;
                      Net net;
                      const Way way;
                      FullyShardedDataParallel fsdp(net, ranks, way.strategy, way.options);
                      for (int step = 0; step < 3; ++step) {
                        const at::Tensor rows = input(9, 0, ranks.rank(), at::kFloat);
                        rows.set_requires_grad(true);
                        rows.register_hook(
                            [](const at::Tensor&) { throw std::runtime_error("a mistake"); });
                        std::string message;
                        try {
                          fsdp.forward([&] { return net.loss(rows, {}); }).backward();
                        } catch (const std::exception& error) {
                          message = error.what();
                        }
                        require(message.starts_with("a mistake"), message);
                        train_plain(plain, way, ranks.world_size(), step);
                        train_sharded(net, fsdp, way, ranks, step);
                      }
                      require(difference(fsdp.local_parameters(), plain_parameters(plain)) < 1e-6,
                              "the weights of steps that did not fail");
                    }),
            "");
}

void shrink(const std::vector<NamedParameter>& parameters) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : parameters) parameter.tensor.mul_(0.9);
}

TEST(Fsdp, ForgetsAForwardPassWhoseBackwardNeverCame) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      for (const auto strategy : kStrategies) {
                        Net plain;
                        Net net;
                        const Way way{.strategy = strategy, .options = {}};
                        FullyShardedDataParallel fsdp(net, ranks, strategy, {});
                        for (int step = 0; step < 3; ++step) {
                          const at::Tensor rows = input(9, 0, ranks.rank(), at::kFloat);
                          fsdp.forward([&] { return net.loss(rows, {}); });
                          // The update makes what is left of that pass out of date.
                          shrink(fsdp.local_parameters());
                          shrink(plain_parameters(plain));
                          train_plain(plain, way, ranks.world_size(), step);
                          train_sharded(net, fsdp, way, ranks, step);
                        }
                        require(difference(fsdp.local_parameters(), plain_parameters(plain)) < 1e-6,
                                "the weights of steps in between");
                      }
                    }),
            "");
}

at::Tensor rows_of(int64_t rank) {
  return Net::wave({3, kWidth}, static_cast<double>(rank)).to(at::kFloat);
}

/// One step's gradients, and their norm, are those of the whole batch on one rank.
template <class Model>
void require_plain_gradients(const Ranks& ranks, const FsdpOptions& options,
                             const at::Tensor& rows) {
  seed_everything(1);
  Model plain;
  seed_everything(1);
  Model module;
  for (int64_t r = 0; r < ranks.world_size(); ++r) {
    plain.loss(rows_of(r)).div(ranks.world_size()).backward();
  }
  const auto fsdp = prepare_fsdp(module, ranks, ShardingStrategy::full_shard, options);
  fsdp->forward([&] { return module.loss(rows); }).backward();
  std::vector<at::Tensor> gradients;
  for (const auto& item : plain.named_parameters()) {
    const NamedParameter local = fsdp->local({item.key(), module.named_parameters()[item.key()]});
    const at::Tensor expected =
        item.value().grad().view(-1).slice(0, local.shard->begin, local.shard->end);
    require(local.tensor.grad().allclose(expected, 1e-5, 1e-6), item.key());
    gradients.push_back(item.value().grad());
  }
  const double expected = gradient_norm(gradients).item().toDouble();
  const double norm = fsdp->gradient_norm(fsdp->local_parameters()).item().toDouble();
  require(std::abs(norm - expected) < 1e-5 * expected, fmt::format("{} is {}", norm, expected));
}

TEST(Fsdp, KeepsTheGradientsOfAUnitThatTheInputGoesIntoTwice) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      require_plain_gradients<Loop>(ranks, {}, rows_of(ranks.rank()));
                    }),
            "");
}

TEST(Fsdp, GivesTheSumOfATiedParametersGradientsToAnAuthorsHook) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net net;
                      FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, {});
                      const at::Tensor tied = net.named_parameters()["embedding"];
                      int64_t calls = 0;
                      tied.register_hook([&](const at::Tensor&) { ++calls; });
                      const at::Tensor rows = input(3, 0, ranks.rank(), at::kFloat);
                      fsdp.forward([&] { return net.loss(rows, {}); }).backward();
                      require(calls == 1, fmt::format("{} calls", calls));
                    }),
            "");
}

TEST(Fsdp, GathersNoUnitAgainAfterItsLastBackward) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Loop net;
                      FsdpOptions options;
                      options.backward_prefetch = BackwardPrefetch::post;
                      const auto fsdp =
                          prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                      const at::Tensor rows = rows_of(0).requires_grad_();
                      rows.register_hook([&](const at::Tensor&) {
                        require(gathered_units(*fsdp).empty(), "the unit is freed");
                      });
                      fsdp->forward([&] { return net.loss(rows); }).backward();
                    }),
            "");
}

TEST(Fsdp, TakesTheNormOfGradientsOfDifferentTypesOnEachRank) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      FsdpOptions options;
                      options.ignored_modules = {"double"};  // counts on the first rank only
                      require_plain_gradients<TwoTypes>(ranks, options, rows_of(ranks.rank()));
                    }),
            "");
}

TEST(Fsdp, RefusesADirectCallOfAShardedUnitsForward) {
  const std::string message = failure(2, [](const Ranks& ranks) {
    Net net;
    const auto fsdp = prepare_fsdp(net, ranks);
    net.forward_of_first(Net::wave({2, kWidth}, 0).to(at::kFloat));
  });
  EXPECT_THAT(message, ::testing::HasSubstr("the parameter 'first.inner."));
  EXPECT_THAT(message, ::testing::HasSubstr("call the unit itself, unit(x), not its forward"));
}

TEST(Fsdp, RefusesRanksWhoseModelsDiffer) {
  const std::string message = failure(2, [](const Ranks& ranks) {
    Net net;
    if (ranks.rank() == 1) net.register_parameter("more", tensors::zeros({2}));
    prepare_fsdp(net, ranks);
  });
  EXPECT_THAT(message, ::testing::HasSubstr("rank 1"));
  EXPECT_THAT(message, ::testing::HasSubstr("more"));
}

}  // namespace
}  // namespace phalanx::fsdp::testing
