// SPDX-License-Identifier: Apache-2.0
// Sharded training on a device: the CPU's bits, nothing used before it is there, and a host that
// waits for nothing.

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/long.h"
#include "tests/test_device/clock.h"
#include "tests/test_device/device_ranks.h"
#include "tests/test_device/failure.h"
#include "tests/test_device/races.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/test_device.h"
#include "tests/test_device/timeline.h"
#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/pass_cases.h"
#include "trainer/api/module_hook.h"
#include "trainer/api/units.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/tensors/random.h"

namespace phalanx::fsdp::testing {
namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kSteps = 4;

/// One way to train.
struct Way {
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  FsdpOptions options;
  bool offload = false;
  int64_t micro_batches = 1;
};

std::vector<at::Tensor> batches_of(const Way& way, const World& world, at::ScalarType dtype) {
  std::vector<at::Tensor> batches;
  for (int64_t i = 0; i < kSteps * way.micro_batches; ++i) {
    const auto phase = static_cast<double>(i * kRanks + world.ranks().rank());
    batches.push_back(Net::wave({3, kInputs}, phase).to(dtype).to(world.device()));
  }
  return batches;
}

struct Trained {
  std::vector<at::Tensor> parts;  ///< The parameters, as this rank has them.
  std::vector<int64_t> drains;    ///< By step, how often the host waited for the device.
  std::string what_drained;
};

/// `pass`: what the model does, where not every step uses all.
Trained train(const Way& way, const World& world, const Pass& pass) {
  Net net;
  FullyShardedDataParallel fsdp(net, world.ranks(), way.strategy, way.options,
                                /*sync_module_states=*/true,
                                {.device = world.device(), .cpu_offload = way.offload});
  const std::vector<at::Tensor> batches =
      batches_of(way, world, fsdp.input_dtype().value_or(at::kFloat));
  Trained trained;
  auto batch = batches.begin();
  for (int64_t step = 0; step < kSteps; ++step) {
    const test_device::SyncCount syncs;
    for (int64_t i = 0; i < way.micro_batches; ++i) {
      const bool synchronize = i + 1 == way.micro_batches;
      fsdp.forward([&] { return net.loss(*batch++, pass).to(at::kFloat); }, synchronize).backward();
    }
    descend(fsdp.local_parameters());
    trained.drains.push_back(syncs.drains());
    trained.what_drained += test_device::describe_drains(syncs.all());
  }
  for (const NamedParameter& local : fsdp.local_parameters()) {
    trained.parts.push_back(local.tensor.detach().to(at::kCPU));
  }
  return trained;
}

/// On devices as on the CPU, with so many waits of the host a step.
void expect_alike(const Way& way, int64_t drains_a_step, const Pass& pass = {}) {
  const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
    test_device::take_races();
    const Trained on_device = train(way, worlds.on_device, pass);
    const std::vector<std::string> races = test_device::take_races();
    require(races.empty(), fmt::format("no race: {}", races.empty() ? "" : races.front()));
    for (int64_t step = 0; step < kSteps; ++step) {
      const int64_t drains = on_device.drains.at(static_cast<std::size_t>(step));
      require(drains == drains_a_step,
              fmt::format("{} waits in step {}, not {}:\n{}", drains_a_step, step, drains,
                          on_device.what_drained));
    }
    const Trained on_cpu = train(way, worlds.on_cpu, pass);
    require(on_device.parts.size() == on_cpu.parts.size(), "as many parts");
    for (std::size_t i = 0; i < on_cpu.parts.size(); ++i) {
      require(on_device.parts[i].equal(on_cpu.parts[i]), fmt::format("part {}: the same bits", i));
    }
  });
  EXPECT_EQ(outcome.message, "");
}

const std::vector<ShardingStrategy> kStrategies{
    ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op, ShardingStrategy::no_shard,
    ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2};

TEST(OnDevice, EveryStrategyTrainsAsOnTheCpu) {
  for (const ShardingStrategy strategy : kStrategies) {
    SCOPED_TRACE(to_string(strategy));
    expect_alike({.strategy = strategy}, 0);
  }
}

TEST(OnDevice, CopiesAreAveragedBeside) {
  Way way{.strategy = ShardingStrategy::hybrid_shard};
  way.options.shard_group_size = 1;
  expect_alike(way, 0);
}

TEST(OnDevice, PrefetchesAsItLikes) {
  for (const std::optional<bool> forward : {std::optional<bool>(), std::optional(true)}) {
    for (const std::optional<BackwardPrefetch> backward :
         {std::optional<BackwardPrefetch>(), std::optional(BackwardPrefetch::pre),
          std::optional(BackwardPrefetch::post)}) {
      Way way;
      way.options.forward_prefetch = forward;
      way.options.backward_prefetch = backward;
      expect_alike(way, 0);
    }
  }
}

TEST(OnDevice, MicroBatchesAddUp) {
  for (const auto kind : {AccumulatedGradients::whole, AccumulatedGradients::sharded}) {
    Way way{.micro_batches = 3};
    way.options.accumulated_gradients = kind;
    expect_alike(way, 0);
  }
}

TEST(OnDevice, ComputesInLowerPrecision) {
  Way way;
  way.options.mixed_precision = {.param_dtype = LowPrecision::bfloat16,
                                 .reduce_dtype = LowPrecision::float32};
  expect_alike(way, 0);
}

// What is reduced is none of what the optimizer gets.
TEST(OnDevice, ReducesInLowerPrecision) {
  for (const auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::no_shard}) {
    SCOPED_TRACE(to_string(strategy));
    Way way{.strategy = strategy, .micro_batches = 2};
    way.options.mixed_precision.param_dtype = LowPrecision::bfloat16;
    way.options.accumulated_gradients = AccumulatedGradients::sharded;
    expect_alike(way, 0);
  }
}

// The optimizer reads the gradients on the host, so that it waits: once, and not for each unit.
TEST(OnDevice, OffloadedGradientsAreWaitedForOnceAStep) {
  for (const ShardingStrategy strategy : kStrategies) {
    SCOPED_TRACE(to_string(strategy));
    expect_alike({.strategy = strategy, .offload = true}, 1);
  }
}

TEST(OnDevice, OffloadedGradientsAddUp) {
  for (const auto kind : {AccumulatedGradients::whole, AccumulatedGradients::sharded}) {
    Way way{.offload = true, .micro_batches = 3};
    way.options.accumulated_gradients = kind;
    way.options.mixed_precision.param_dtype = LowPrecision::bfloat16;
    expect_alike(way, 1);
  }
}

TEST(OnDevice, OffloadKeepsParametersAndGradientsInHostMemory) {
  for (const bool offload : {false, true}) {
    SCOPED_TRACE(offload);
    const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
      const World& world = worlds.on_device;
      Net net;
      FullyShardedDataParallel fsdp(net, world.ranks(), ShardingStrategy::full_shard, {},
                                    /*sync_module_states=*/true,
                                    {.device = world.device(), .cpu_offload = offload});
      const at::Tensor rows = Net::wave({3, kInputs}, 0).to(at::kFloat).to(world.device());
      fsdp.forward([&] { return net.loss(rows, {}); }).backward();
      int64_t gradients = 0;
      for (const NamedParameter& local : fsdp.local_parameters()) {
        const at::Tensor& gradient = local.tensor.grad();
        require(local.tensor.is_cpu() == offload, local.name);
        if (!gradient.defined()) continue;
        require(gradient.is_cpu() == offload, "the gradient of " + local.name);
        ++gradients;
      }
      require(gradients > 0, "some have gradients");
    });
    EXPECT_EQ(outcome.message, "");
  }
}

/// What the cases of passes in another order leave, one after the other.
std::vector<at::Tensor> gradients_of_cases(ShardingStrategy strategy, bool offload,
                                           const World& world) {
  Net net;
  FullyShardedDataParallel fsdp(net, world.ranks(), strategy, {}, /*sync_module_states=*/true,
                                {.device = world.device(), .cpu_offload = offload});
  const PassRunner runner{
      .forward = [&](const auto& pass,
                     bool synchronize) { return fsdp.forward(pass, synchronize); },
      .use = [&](const auto& action) { fsdp.use(action); }};
  const LossOf loss = [&](int64_t i, bool is_whole) {
    const auto phase = static_cast<double>(4 * i + world.ranks().rank());
    const at::Tensor rows = Net::wave({3, kInputs}, phase).to(at::kFloat).to(world.device());
    return net.loss(rows, {.with_optional = is_whole});
  };
  std::vector<at::Tensor> gradients;
  for (const PassCase& of : pass_cases()) {
    of.run(runner, loss);
    for (const NamedParameter& local : fsdp.local_parameters()) {
      at::Tensor& gradient = local.tensor.mutable_grad();
      if (gradient.defined())
        gradients.push_back(gradient.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
      gradient.reset();
    }
  }
  return gradients;
}

TEST(OnDevice, PassesInAnyOrderLeaveWhatTheyDoOnTheCpu) {
  using Way = std::pair<ShardingStrategy, bool>;
  const std::vector<Way> ways{{ShardingStrategy::full_shard, true},
                              {ShardingStrategy::full_shard, false},
                              {ShardingStrategy::shard_grad_op, false},
                              {ShardingStrategy::shard_grad_op, true}};
  for (const auto& [strategy, offload] :
       sample_of(ways, 1, "strategies, with and without offload")) {
    SCOPED_TRACE(to_string(strategy));
    const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
      test_device::take_races();
      const auto found = gradients_of_cases(strategy, offload, worlds.on_device);
      const std::vector<std::string> races = test_device::take_races();
      require(races.empty(), fmt::format("no race: {}", races.empty() ? "" : races.front()));
      const auto expected = gradients_of_cases(strategy, offload, worlds.on_cpu);
      require(found.size() == expected.size(), "as many gradients");
      for (std::size_t i = 0; i < found.size(); ++i) {
        require(found[i].equal(expected[i]), fmt::format("gradient {}: the same bits", i));
      }
    });
    EXPECT_EQ(outcome.message, "");
  }
}

/// Looks on when a unit's own forward begins.
class AtUnits final : public ModuleHook {
 public:
  explicit AtUnits(std::function<void()> look) : look_(std::move(look)) {}

  std::vector<at::Tensor> around(HookedModule&, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    look_();
    return forward(std::move(inputs));
  }

 private:
  std::function<void()> look_;
};

// Otherwise a gather that is begun early would begin no earlier.
TEST(OnDevice, AGatherDoesNotWaitForWhatIsQueuedBeforeIt) {
  const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
    const World& world = worlds.on_device;
    const uint32_t computing = test_device::current_number(world.device().index());
    Net net;
    FullyShardedDataParallel fsdp(net, world.ranks(), ShardingStrategy::full_shard, {},
                                  /*sync_module_states=*/true, {.device = world.device()});
    test_device::Clock before;
    uint64_t queued = 0;
    bool is_first_unit = false;
    int64_t gathers = 0;
    const auto look = [&] {
      if (!std::exchange(is_first_unit, false)) return;
      const test_device::Clock now = test_device::all_enqueued();
      for (uint32_t stream = 0; stream < now.streams(); ++stream) {
        if (stream == computing || now.of(stream) == before.of(stream)) continue;
        ++gathers;
        require(test_device::clock_of(stream).of(computing) < queued,
                test_device::stream_name(stream) + " waits for nothing that is computed");
      }
    };
    for (const NamedHooked& unit : units(net)) unit.hooks->attach(std::make_shared<AtUnits>(look));
    const at::Tensor batch = Net::wave({3, kInputs}, 0).to(at::kFloat).to(world.device());
    constexpr int64_t kPasses = 3;
    for (int64_t pass = 0; pass < kPasses; ++pass) {
      fsdp.forward([&] {
            before = test_device::all_enqueued();
            at::full({3}, 1.0, at::TensorOptions(world.device()));
            queued = test_device::clock_of(computing).of(computing);
            is_first_unit = true;
            return net.loss(batch, {});
          })
          .backward();
    }
    require(gathers >= kPasses, fmt::format("{} gathers", gathers));
  });
  EXPECT_EQ(outcome.message, "");
}

/// Gives the second step's backward pass up while gradients are reduced and averaged, and trains
/// on.
void train_past_a_dropped_pass(const Way& way, const World& world) {
  Net net;
  FullyShardedDataParallel fsdp(net, world.ranks(), way.strategy, way.options,
                                /*sync_module_states=*/true,
                                {.device = world.device(), .cpu_offload = way.offload});
  bool gives_up = false;
  net.named_parameters()["second.inner.weight"].register_hook([&](const at::Tensor&) {
    if (gives_up) throw std::runtime_error("given up");
  });
  const std::vector<at::Tensor> batches =
      batches_of(way, world, fsdp.input_dtype().value_or(at::kFloat));
  for (int64_t step = 0; step < kSteps; ++step) {
    gives_up = step == 1;
    const at::Tensor& batch = batches.at(static_cast<std::size_t>(step));
    bool was_given_up = false;
    try {
      fsdp.forward([&] { return net.loss(batch, {}).to(at::kFloat); }).backward();
    } catch (const std::runtime_error&) {
      was_given_up = true;
    }
    require(was_given_up == gives_up, fmt::format("step {} is given up or not", step));
    descend(fsdp.local_parameters());
  }
}

std::vector<Way> ways_to_drop_a_pass() {
  std::vector<Way> ways;
  for (const auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::no_shard}) {
    for (const bool offload : {false, true}) {
      for (const bool is_low : {false, true}) {
        Way way{.strategy = strategy, .offload = offload};
        if (is_low) way.options.mixed_precision.param_dtype = LowPrecision::bfloat16;
        way.options.broadcast_buffers = false;  // the next pass would wait for the averages with it
        ways.push_back(way);
      }
    }
  }
  return ways;
}

// What is reduced and averaged then is freed, and the next pass takes its memory.
TEST(OnDevice, WhatADroppedPassAveragesIsNobodyElsesMemory) {
  const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
    for (const Way& way : ways_to_drop_a_pass()) {
      test_device::take_races();
      train_past_a_dropped_pass(way, worlds.on_device);
      const std::vector<std::string> races = test_device::take_races();
      require(races.empty(), fmt::format("no race in {}{}{}: {}", to_string(way.strategy),
                                         way.offload ? ", offloaded" : "",
                                         way.options.mixed_precision.param_dtype ? ", low" : "",
                                         races.empty() ? "" : races.front()));
    }
  });
  EXPECT_EQ(outcome.message, "");
}

// An engine may end while its gradients are copied into pinned memory, which the next one gets.
TEST(OnDevice, PinnedMemoryIsHandedOnOnceItsCopiesAreOver) {
  Way way{.offload = true};
  way.options.accumulated_gradients = AccumulatedGradients::sharded;
  const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
    test_device::take_races();
    for (int engine = 0; engine < 2; ++engine) {
      const World& world = worlds.on_device;
      Net net;
      FullyShardedDataParallel fsdp(net, world.ranks(), way.strategy, way.options,
                                    /*sync_module_states=*/true,
                                    {.device = world.device(), .cpu_offload = way.offload});
      const at::Tensor batch = batches_of(way, world, at::kFloat).front();
      fsdp.forward([&] { return net.loss(batch, {}); }, /*synchronize=*/false).backward();
    }
    const std::vector<std::string> races = test_device::take_races();
    require(races.empty(), fmt::format("no race: {}", races.empty() ? "" : races.front()));
  });
  EXPECT_EQ(outcome.message, "");
}

// A forward pass that fails may leave the next unit's gather behind, which still reads the shards.
TEST(OnDevice, AnEngineThatEndsIsNoLongerGatheredFrom) {
  const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
    test_device::take_races();
    const World& world = worlds.on_device;
    const auto rows = [&](int64_t width) {
      return Net::wave({3, width}, 0).to(at::kFloat).to(world.device());
    };
    {
      Staged model;
      FsdpOptions options;
      options.forward_prefetch = true;
      FullyShardedDataParallel fsdp(model, world.ranks(), ShardingStrategy::full_shard, options,
                                    /*sync_module_states=*/true, {.device = world.device()});
      fsdp.forward([&] { return model.loss(rows(kWidth)); }).backward();  // the order is known now
      bool has_failed = false;
      try {
        fsdp.forward([&] { return model.loss(rows(kWidth + 1)); });
      } catch (const std::exception&) {
        has_failed = true;
      }
      require(has_failed, "a wrong width is refused");
    }
    std::vector<at::Tensor> others;
    for (int i = 0; i < 50; ++i) {
      others.push_back(at::full({50}, 1.0, at::TensorOptions(world.device())));
    }
    const std::vector<std::string> races = test_device::take_races();
    require(races.empty(), fmt::format("no race: {}", races.empty() ? "" : races.front()));
  });
  EXPECT_EQ(outcome.message, "");
}

/// Ends with gathered units, others' memory that is kept for the next, and gradients on their way
/// to the host.
void train_until_the_device_fails(bool offload, const World& world) {
  const RngGuard random_numbers(world.device());
  Way way{.offload = offload};
  way.options.accumulated_gradients = AccumulatedGradients::sharded;
  Net net;
  FullyShardedDataParallel fsdp(net, world.ranks(), way.strategy, way.options,
                                /*sync_module_states=*/true,
                                {.device = world.device(), .cpu_offload = offload});
  const std::vector<at::Tensor> batches = batches_of(way, world, at::kFloat);
  fsdp.forward([&] { return net.loss(batches.at(0), {}); }, /*synchronize=*/false).backward();
  fsdp.forward([&] {
    test_device::fail();
    return net.loss(batches.at(1), {});
  });
}

// What ends then asks the device as well, and must not end the process.
TEST(OnDevice, TheFirstErrorOfADeviceIsTold) {
  for (const bool offload : {false, true}) {
    SCOPED_TRACE(offload);
    const auto outcome = test_device::in_device_ranks(kRanks, [&](test_device::Worlds& worlds) {
      std::string told;
      try {
        train_until_the_device_fails(offload, worlds.on_device);
      } catch (const std::exception& error) {
        told = error.what();
      }
      require(told.find(test_device::kFailure) != std::string::npos, "told is: " + told);
    });
    EXPECT_EQ(outcome.message, "");
  }
}

}  // namespace
}  // namespace phalanx::fsdp::testing
