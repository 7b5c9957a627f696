// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/precision/grad_scaler.h"

namespace phalanx::fsdp::testing {
namespace {

std::string failure(int64_t processes, const std::function<void(const Ranks&)>& body) {
  return in_ranks(processes, [&](World& world) { body(world.ranks()); }).message;
}

at::Tensor rows(int64_t phase) {
  return Net::wave({3, kInputs}, static_cast<double>(phase)).to(at::kFloat);
}

std::vector<at::Tensor> gradients(const FullyShardedDataParallel& fsdp) {
  std::vector<at::Tensor> found;
  for (const auto& parameter : fsdp.local_parameters()) {
    if (parameter.tensor.grad().defined()) found.push_back(parameter.tensor.grad());
  }
  return found;
}

/// The gradients of the whole batch, computed by parameters and inputs of low precision, and added
/// up in single precision.
void require_gradients(const FsdpMixedPrecision& precision, ShardingStrategy strategy,
                       const Ranks& ranks) {
  const at::ScalarType low =
      precision.param_dtype == LowPrecision::float16 ? at::kHalf : at::kBFloat16;
  Net plain;
  plain.to(low);
  std::map<std::string, at::Tensor> sums;
  for (int64_t r = 0; r < ranks.world_size(); ++r) {
    plain.zero_grad();
    plain.loss(rows(r).to(low), {}).backward();
    for (const auto& item : plain.named_parameters()) {
      if (!item.value().grad().defined()) continue;
      const at::Tensor gradient = item.value().grad().to(at::kFloat).div(ranks.world_size());
      auto& sum = sums[item.key()];
      sum = sum.defined() ? sum.add(gradient) : gradient;
    }
  }
  Net net;
  FsdpOptions options;
  options.mixed_precision = precision;
  FullyShardedDataParallel fsdp(net, ranks, strategy, options);
  require(fsdp.input_dtype() == low, "what inputs are cast to");
  fsdp.forward([&] { return net.loss(rows(ranks.rank()).to(low), {}).to(at::kFloat); }).backward();
  // Reduced in single precision only additions differ; reduced in `low`, each of its roundings.
  const double unit = low == at::kHalf ? 0x1p-11 : 0x1p-8;
  const double relative = precision.reduce_dtype == LowPrecision::float32 ? 1e-6 : 2 * unit;
  for (const auto& local : fsdp.local_parameters()) {
    require(local.tensor.scalar_type() == at::kFloat, "the shard is not of low precision");
    const at::Tensor& gradient = local.tensor.grad();
    require(gradient.defined() == sums.contains(local.name), local.name);
    if (!gradient.defined() || gradient.numel() == 0) continue;
    const at::Tensor expected =
        sums[local.name].view(-1).slice(0, local.shard->begin, local.shard->end);
    const double most = gradient.to(at::kFloat).sub(expected).abs().max().item<double>() /
                        sums[local.name].abs().max().item<double>();
    require(most <= relative, fmt::format("{}: {} > {}", local.name, most, relative));
    const bool is_kept =
        precision.keep_low_precision_grads && precision.reduce_dtype != LowPrecision::float32;
    require(gradient.scalar_type() == (is_kept ? low : at::kFloat), "the gradient's precision");
  }
}

TEST(Precision, ComputesInLowAndReducesInWhateverPrecision) {
  EXPECT_EQ(failure(4,
                    [](const Ranks& ranks) {
                      for (const auto param : {LowPrecision::bfloat16, LowPrecision::float16}) {
                        const auto strategy = ShardingStrategy::full_shard;
                        require_gradients(
                            {.param_dtype = param, .reduce_dtype = LowPrecision::float32}, strategy,
                            ranks);
                        require_gradients({.param_dtype = param, .keep_low_precision_grads = true},
                                          strategy, ranks);
                      }
                      for (const auto strategy :
                           {ShardingStrategy::shard_grad_op, ShardingStrategy::no_shard,
                            ShardingStrategy::hybrid_shard}) {
                        require_gradients({.param_dtype = LowPrecision::bfloat16}, strategy, ranks);
                      }
                    }),
            "");
}

TEST(Precision, GathersTheNewWeightsAfterAStep) {
  EXPECT_EQ(
      failure(2,
              [](const Ranks& ranks) {
                for (const auto strategy :
                     {ShardingStrategy::shard_grad_op, ShardingStrategy::no_shard}) {
                  Net net;
                  FsdpOptions options;
                  options.mixed_precision.param_dtype = LowPrecision::bfloat16;
                  FullyShardedDataParallel fsdp(net, ranks, strategy, options);
                  const auto loss = [&] {
                    return fsdp.forward([&] { return net.loss(rows(0).to(at::kBFloat16), {}); });
                  };
                  const double before = loss().item<double>();
                  loss().backward();
                  {
                    const at::NoGradGuard no_grad;
                    for (auto& local : fsdp.local_parameters()) local.tensor.zero_();
                  }
                  require(loss().item<double>() != before, "the weights have changed");
                }
              }),
      "");
}

TEST(Precision, SummonsTheShardsOwnPrecision) {
  EXPECT_EQ(
      failure(2,
              [](const Ranks& ranks) {
                Net plain;
                Net net;
                FsdpOptions options;
                options.mixed_precision.param_dtype = LowPrecision::bfloat16;
                FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, options);
                const auto expected = plain.named_parameters();
                fsdp.summon_full_params(
                    [&] {
                      for (const auto& item : net.named_parameters()) {
                        require(item.value().equal(expected[item.key()]), item.key());
                      }
                      const at::NoGradGuard no_grad;
                      for (auto& item : net.named_parameters()) {
                        item.value().copy_(expected[item.key()].add(0.001));
                      }
                    },
                    /*write_back=*/true);
                for (const auto& local : fsdp.local_parameters()) {
                  const at::Tensor whole = expected[local.name].add(0.001).view(-1);
                  require(local.tensor.equal(whole.slice(0, local.shard->begin, local.shard->end)),
                          local.name);
                }
              }),
      "");
}

TEST(Precision, TrainsOnAfterALook) {
  EXPECT_EQ(
      failure(2,
              [](const Ranks& ranks) {
                Net net;
                FsdpOptions options;
                options.mixed_precision.param_dtype = LowPrecision::bfloat16;
                FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, options);
                const auto step = [&] {
                  for (auto& local : fsdp.local_parameters()) local.tensor.mutable_grad().reset();
                  fsdp.forward([&] { return net.loss(rows(0).to(at::kBFloat16), {}); }).backward();
                  return gradients(fsdp);
                };
                const auto before = step();
                fsdp.summon_full_params([] {});
                const auto after = step();
                require(!before.empty() && before.size() == after.size(), "as many gradients");
                for (size_t i = 0; i < before.size(); ++i) {
                  require(before[i].equal(after[i]), "the same gradients");
                }
              }),
      "");
}

TEST(Precision, LeavesWhatIsIgnoredAsItIs) {
  EXPECT_EQ(
      failure(2,
              [](const Ranks& ranks) {
                Net net;
                FsdpOptions options;
                options.mixed_precision.param_dtype = LowPrecision::bfloat16;
                options.ignored_modules = {"nest"};
                FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, options);
                for (const auto& item : net.named_parameters()) {
                  const bool is_ignored = item.key().starts_with("nest.");
                  require(item.value().scalar_type() == (is_ignored ? at::kFloat : at::kBFloat16),
                          item.key());
                }
              }),
      "");
}

TEST(Precision, ManyRanksGradientsDoNotOverflowInFloat16) {
  EXPECT_EQ(
      failure(4,
              [](const Ranks& ranks) {
                Net net;
                FsdpOptions options;
                options.mixed_precision.param_dtype = LowPrecision::float16;
                FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, options);
                // Each rank's gradient of `scale` is 30,000, and float16 ends at 65,504.
                const at::Tensor scale = net.named_parameters()["scale"];
                fsdp.forward([&] { return scale.to(at::kFloat).mul(30000.0).sum(); }).backward();
                for (const at::Tensor& gradient : gradients(fsdp)) {
                  if (gradient.numel() == 0) continue;
                  require(gradient.item<double>() == 30000, "the mean, which is finite");
                }
              }),
      "");
}

TEST(Precision, OneRanksOverflowIsEverybodys) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      GradScaler scaler({.init_scale = 4});
                      const double value =
                          ranks.rank() == 1 ? std::numeric_limits<double>::infinity() : 1.0;
                      require(!scaler.unscale({tensors::full({1}, value)}, ranks), "is skipped");
                      require(scaler.current_scale() == 2, "and the scale lowered");
                    }),
            "");
}

}  // namespace
}  // namespace phalanx::fsdp::testing
