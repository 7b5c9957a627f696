// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/delayed_backend.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLatency(500);

struct Delayed : ::testing::Test {
  void SetUp() override { set("500"); }
  void TearDown() override { ::unsetenv("PHALANX_SIMULATED_LATENCY_MS"); }
  static void set(const char* value) { ::setenv("PHALANX_SIMULATED_LATENCY_MS", value, 1); }
};

std::string failure(const std::function<void(const Ranks&)>& body) {
  return in_ranks(2, [&](World& world) { body(world.ranks()); }).message;
}

void require_time(Clock::time_point begin, milliseconds least, milliseconds below,
                  const std::string& what) {
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  require(took >= least && took < below, fmt::format("{}: {} ms", what, took.count()));
}

TEST_F(Delayed, IsOverNoSoonerThanItsLatency) {
  const auto message = failure([](const Ranks& ranks) {
    const at::Tensor part = at::full({2}, static_cast<float>(ranks.rank() + 1));
    const at::Tensor whole = at::empty({4});
    const auto takes_its_time = [](const char* what, auto operation) {
      const auto begin = Clock::now();
      Pending pending = operation();
      require_time(begin, milliseconds(0), kLatency, std::string("beginning: ") + what);
      pending.wait();
      require_time(begin, kLatency, 10 * kLatency, what);
    };
    takes_its_time("all-gather", [&] { return ranks.start_all_gather(whole, part); });
    require(whole.sum().item<float>() == 6, "all-gathered");
    takes_its_time("reduce-scatter", [&] { return ranks.start_reduce_scatter(part, whole); });
    require(part.sum().item<float>() == (ranks.is_first() ? 4 : 8), "reduce-scattered");
    takes_its_time("all-to-all", [&] { return ranks.start_all_to_all(whole, whole.clone()); });
    takes_its_time("all-reduce", [&] { return ranks.start_all_reduce(part); });
    require(part.sum().item<float>() == 12, "all-reduced");
    takes_its_time("broadcast", [&] { return ranks.start_broadcast(part); });
    takes_its_time("transfer", [&] {
      return ranks.is_first() ? ranks.start_send(part, 1) : ranks.start_receive(part, 0);
    });
  });
  EXPECT_EQ(message, "");
}

TEST_F(Delayed, PassesWhileTheCallerComputesAndForAllAtOnce) {
  const auto message = failure([](const Ranks& ranks) {
    const at::Tensor first = at::full({2}, 1.0F);
    const at::Tensor second = at::full({2}, 2.0F);
    ranks.barrier();
    const auto begin = Clock::now();
    Pending pending_first = ranks.start_all_reduce(first);
    Pending pending_second = ranks.start_all_reduce(second);
    std::this_thread::sleep_for(kLatency / 2);
    pending_first.wait();
    pending_second.wait();
    require_time(begin, kLatency, 2 * kLatency, "both");
    require(second.sum().item<float>() == 8, "reduced");
  });
  EXPECT_EQ(message, "");
}

TEST_F(Delayed, HoldsForTheFutureThatDdpWaitsFor) {
  const auto message = failure([](const Ranks& ranks) {
    ranks.barrier();
    const auto begin = Clock::now();
    std::vector<at::Tensor> tensors{at::full({2}, 3.0F)};
    const auto future = process_group(ranks)->allreduce(tensors)->getFuture();
    require_time(begin, milliseconds(0), kLatency, "beginning");
    future->waitAndThrow();
    require_time(begin, kLatency, 2 * kLatency, "the future");
    require(future->value().toTensorVector().at(0).sum().item<float>() == 12, "its value");
  });
  EXPECT_EQ(message, "");
}

TEST_F(Delayed, HoldsInSubgroups) {
  const auto message = failure([](const Ranks& ranks) {
    const auto both = ranks.subgroup(std::vector<int64_t>{1, 0});
    const auto begin = Clock::now();
    both->all_reduce(at::full({2}, 1.0F));
    require_time(begin, kLatency, 10 * kLatency, "all-reduce of a subgroup");
  });
  EXPECT_EQ(message, "");
}

TEST_F(Delayed, RefusesAWrongLatencyBeforeRanksMeet) {
  set("soon");
  EXPECT_EQ(failure([](const Ranks&) {}),
            "PHALANX_SIMULATED_LATENCY_MS is 'soon', but must be a number of milliseconds from 0 "
            "to 60000");
}

TEST_F(Delayed, BreaksOffWhenAPeerIsGone) {
  const auto outcome = in_ranks(2, [](World& world) {
    world.ranks().barrier();
    if (world.ranks().rank() == 1) throw std::runtime_error("rank 1 ends");
    world.ranks().all_reduce(at::full({2}, 1.0F));
  });
  EXPECT_THAT(outcome.message, ::testing::HasSubstr("rank 1 ends"));
}

TEST_F(Delayed, IsOffWhereTheVariableIsNotSet) {
  set("");
  EXPECT_EQ(simulated_latency().count(), 0);
  TearDown();
  EXPECT_EQ(simulated_latency().count(), 0);
  set("1.5");
  EXPECT_EQ(simulated_latency().count(), 1500);
  for (const char* wrong : {"x", "5ms", "-1", "60001", "nan"}) {
    set(wrong);
    EXPECT_THROW(simulated_latency(), UserError) << wrong;
  }
}

}  // namespace
}  // namespace phalanx
