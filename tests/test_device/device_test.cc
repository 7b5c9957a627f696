// SPDX-License-Identifier: Apache-2.0
// What the device does with values, memory and random numbers.

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/index.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/tensors.h"
#include "tests/test_device/test_device.h"

namespace phalanx::test_device {
namespace {

class Device : public testing::Test {
 protected:
  void SetUp() override { install(); }

  at::Tensor ones(int64_t size) { return tensors::full({size}, 1.0, at::TensorOptions(device())); }
  at::Tensor pinned(int64_t size) {
    return tensors::full({size}, 3.0, at::TensorOptions().pinned_memory(true));
  }
};

using Counts = std::map<std::string, int64_t>;

TEST_F(Device, ComputesWhatTheCpuDoes) {
  const at::Tensor a = tensors::rand({17, 5});
  const at::Tensor b = tensors::rand({5, 9});
  EXPECT_TRUE(a.to(device()).mm(b.to(device())).cpu().equal(a.mm(b)));
  EXPECT_TRUE(a.to(device()).t().contiguous().cpu().equal(a.t().contiguous()));
}

TEST_F(Device, RefusesATensorOfTheHost) { EXPECT_THROW(ones(3) + tensors::ones({3}), c10::Error); }

TEST_F(Device, RefusesATensorOfAnotherDevice) {
  EXPECT_THROW(ones(3) + ones(3).to(device(1)), c10::Error);
}

TEST_F(Device, GivesNewMemoryFullOfNan) {
  const at::Tensor fresh = tensors::empty({100}, at::TensorOptions(device()));
  EXPECT_TRUE(std::isnan(fresh.sum().item().toDouble()));
}

TEST_F(Device, KeepsAModulesTensorWhenItMoves) {
  at::Tensor weight = tensors::ones({3});
  weight.set_data(weight.to(device()));
  EXPECT_EQ(weight.device(), device());
}

TEST_F(Device, CountsAValueThatIsRead) {
  const at::Tensor x = ones(3).sum();
  const SyncCount count;
  EXPECT_EQ(x.item().toDouble(), 3);
  EXPECT_EQ(count.by_reason(), (Counts{{kItem, 1}}));
}

TEST_F(Device, CountsCopiesThatWait) {
  const at::Tensor x = ones(3);
  const SyncCount count;
  const at::Tensor host = x.cpu();
  const at::Tensor back = host.to(device());
  const at::Tensor pageable = tensors::empty({3});
  pageable.copy_(x, /*non_blocking=*/true);
  EXPECT_EQ(count.by_reason(), (Counts{{kCopyToHost, 1}, {kCopyToDevice, 1}, {kPageableCopy, 1}}));
}

TEST_F(Device, CountsShapesThatDependOnValues) {
  const at::Tensor x = ones(3);
  const at::Tensor mask = x > 0;
  const SyncCount count;
  x.nonzero();
  at::index(x, {mask});
  EXPECT_TRUE(x.equal(x));
  EXPECT_EQ(count.by_reason(),
            (Counts{{"aten::nonzero", 1}, {"aten::index.Tensor", 1}, {"aten::equal", 1}}));
}

TEST_F(Device, CountsNoComputation) {
  const SyncCount count;
  const at::Tensor x = ones(3);
  (x * 2).add_(x).sum().view({1});
  ones(3).copy_(pinned(3), /*non_blocking=*/true);
  pinned(3).copy_(x, /*non_blocking=*/true);
  EXPECT_EQ(count.by_reason(), Counts());
}

TEST_F(Device, GivesPinnedMemoryItsValuesWhenTheHostHasWaited) {
  const at::Tensor x = ones(1000);
  const at::Tensor host = pinned(1000);
  host.copy_(x, /*non_blocking=*/true);
  x.mul_(2);  // later on the stream: not what is copied
  EXPECT_TRUE(std::isnan(host.const_data_ptr<float>()[7]));
  current_stream(0).synchronize();
  EXPECT_EQ(host.const_data_ptr<float>()[7], 1);
}

TEST_F(Device, TakesAnEventOfAnEarlierStepForOver) {
  const at::Tensor x = ones(3);
  const at::Tensor host = pinned(3);
  host.copy_(x, /*non_blocking=*/true);
  c10::Event event(kType);
  event.record(current_stream(0));
  {
    const SyncCount step;
    x.mul_(2);
    EXPECT_TRUE(event.query());
    EXPECT_EQ(host.const_data_ptr<float>()[0], 1);
    event.synchronize();
    EXPECT_EQ(step.drains(), 0);
  }
}

TEST_F(Device, CountsAnEventOfAnEarlierStepWithNothingBehindIt) {
  const at::Tensor x = ones(3);
  c10::Event event(kType);
  event.record(current_stream(0));
  const SyncCount step;
  event.synchronize();
  EXPECT_EQ(step.by_reason(), (Counts{{kEvent, 1}}));
}

TEST_F(Device, CountsNoEventThatTheHostHasWaitedFor) {
  const at::Tensor x = ones(3);
  c10::Event event(kType);
  event.record(current_stream(0));
  event.synchronize();
  const SyncCount step;
  event.synchronize();
  EXPECT_EQ(step.drains(), 0);
}

TEST_F(Device, CountsAnEventOfThisStep) {
  const SyncCount step;
  const at::Tensor host = pinned(3);
  host.copy_(ones(3), /*non_blocking=*/true);
  c10::Event event(kType);
  event.record(current_stream(0));
  ones(3).mul_(2);
  EXPECT_FALSE(event.query());
  EXPECT_TRUE(std::isnan(host.const_data_ptr<float>()[0]));
  event.synchronize();
  EXPECT_EQ(host.const_data_ptr<float>()[0], 1);
  EXPECT_EQ(step.by_reason(), (Counts{{kEvent, 1}}));
  EXPECT_GE(step.all().back().queued_behind, 2u);  // the fill and the product behind the event
}

TEST_F(Device, WaitsForWhatAnotherStreamWaitedFor) {
  const at::Tensor host = pinned(3);
  const c10::Stream side = pool_stream(0, /*high_priority=*/false);
  c10::Event event(kType);
  host.copy_(ones(3), /*non_blocking=*/true);
  event.record(current_stream(0));
  event.block(side);
  side.synchronize();
  EXPECT_EQ(host.const_data_ptr<float>()[0], 1);
}

TEST_F(Device, DrawsTheCpusNumbers) {
  const auto seed = [](at::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(5);
  };
  seed(at::kCPU);
  seed(device());
  const at::Tensor drawn = ones(20).uniform_().cpu();
  EXPECT_TRUE(drawn.equal(tensors::ones({20}).uniform_()));
}

}  // namespace
}  // namespace phalanx::test_device
