// SPDX-License-Identifier: Apache-2.0
// Ranks on devices of their own: collectives, and what the device finds of missing waits for them.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/test_device/device_ranks.h"
#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/parallel/in_ranks.h"

namespace phalanx::test_device {
namespace {

constexpr int64_t kSize = 1000;

at::Tensor full(const World& world, double value, int64_t size = kSize) {
  return tensors::full({size}, value, at::TensorOptions(world.device()));
}

double first_of(const at::Tensor& tensor) { return tensor.flatten()[0].item().toDouble(); }

void require_no_race(const std::string& what) {
  const std::vector<std::string> races = take_races();
  require(races.empty(), what + " without a race, but " + (races.empty() ? "" : races.front()));
}

void require_race(const std::string& what) {
  require(!take_races().empty(), what + " is a race that is found");
}

void expect_in_two_ranks(const std::function<void(const World&)>& body) {
  const RankOutcome outcome = in_device_ranks(2, [&](Worlds& worlds) {
    take_races();
    body(worlds.on_device);
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RanksOnDevices, ExchangeValues) {
  expect_in_two_ranks([](const World& world) {
    const Ranks& ranks = world.ranks();
    const auto rank = static_cast<double>(ranks.rank());
    const at::Tensor mean = full(world, rank + 1);
    ranks.all_reduce(mean, Reduction::average);
    require(first_of(mean) == 1.5, "the average");

    const at::Tensor all = full(world, 0, 2 * kSize);
    ranks.all_gather(all, full(world, rank));
    require(all.sum().item().toDouble() == kSize, "what is gathered");

    const at::Tensor part = full(world, 0);
    ranks.reduce_scatter(part, full(world, 3, 2 * kSize), Reduction::average);
    require(first_of(part) == 3, "the average of a part");

    const at::Tensor shared = full(world, rank);
    ranks.broadcast(shared, 1);
    require(first_of(shared) == 1, "rank 1's value");
    require_no_race("what is waited for");
  });
}

TEST(RanksOnDevices, ExchangeHostMemoryToo) {
  expect_in_two_ranks([](const World& world) {
    const at::Tensor count = tensors::ones({1});
    const SyncCount syncs;
    world.ranks().all_reduce(count);
    require(count.item().toDouble() == 2, "the sum");
    require(syncs.drains() == 0, "no wait for the device");
  });
}

TEST(RanksOnDevices, WaitOnTheStreamAndNotOnTheHost) {
  expect_in_two_ranks([](const World& world) {
    const SyncCount syncs;
    const at::Tensor sum = full(world, 1);
    world.ranks().all_reduce(sum);
    sum.mul_(2);
    require(syncs.drains() == 0, "no wait for the device");
    require(first_of(sum) == 4, "twice the sum");
  });
}

TEST(RanksOnDevices, TellOfAResultThatIsUsedBeforeTheWait) {
  expect_in_two_ranks([](const World& world) {
    const at::Tensor sum = full(world, 1);
    Pending pending = world.ranks().start_all_reduce(sum);
    sum * 2;
    pending.wait();
    require_race("reading a result too early");
  });
}

TEST(RanksOnDevices, TellOfAnInputThatIsChangedBeforeTheWait) {
  expect_in_two_ranks([](const World& world) {
    const at::Tensor all = full(world, 0, 2 * kSize);
    const at::Tensor mine = full(world, 1);
    Pending pending = world.ranks().start_all_gather(all, mine);
    mine.mul_(2);
    pending.wait();
    require_race("changing an input too early");
  });
}

TEST(RanksOnDevices, KeepAnInputUntilTheWait) {
  expect_in_two_ranks([](const World& world) {
    const at::Tensor all = full(world, 0, 2 * kSize);
    Pending pending = world.ranks().start_all_gather(all, full(world, 1));
    full(world, 0);
    pending.wait();
    require_no_race("dropping an input");
  });
}

TEST(RanksOnDevices, TellOfWorkThatIsDroppedWithoutAWait) {
  expect_in_two_ranks([](const World& world) {
    { const Pending dropped = world.ranks().start_all_reduce(full(world, 1)); }
    full(world, 0);
    require_race("taking the memory of a collective that nobody waited for");
  });
}

TEST(RanksOnDevices, HaveSubgroups) {
  expect_in_two_ranks([](const World& world) {
    const Ranks separate = world.ranks().separate("a test");
    const at::Tensor sum = full(world, 1);
    separate.all_reduce(sum);
    require(first_of(sum) == 2, "the sum");
    require_no_race("what is waited for");
    separate.close();
  });
}

}  // namespace
}  // namespace phalanx::test_device
