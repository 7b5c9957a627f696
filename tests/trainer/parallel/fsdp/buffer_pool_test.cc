// SPDX-License-Identifier: Apache-2.0
// Whose memory units are gathered into next, on the host and on a device.

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "trainer/parallel/fsdp/device_streams.h"
#include "trainer/parallel/fsdp/resizable_storage.h"

namespace phalanx::fsdp::testing {
namespace {

constexpr int64_t kElements = 1000;
constexpr int64_t kFewerElements = 600;

/// Buffers of units on a device, gathered by filling them with a number.
class OnDevice : public ::testing::Test {
 protected:
  OnDevice() { test_device::take_races(); }

  ResizableStorage unit(int64_t elements = kElements) const {
    return {elements, at::TensorOptions(test_device::device()).dtype(at::kFloat), pool_};
  }

  /// On the gathers' stream; what is computed next waits for it. Returns where it lies.
  const void* gather(ResizableStorage& unit) const {
    streams_->gather.run([&] {
      unit.allocate();
      unit.tensor().fill_(1);
    });
    streams_->gather.join();
    return unit.tensor().const_data_ptr();
  }

  /// Computes with it, and gives it up before that is over.
  static void use(ResizableStorage& unit) {
    unit.tensor().mul_(2);
    unit.free();
  }

  static void expect_no_race() { EXPECT_EQ(test_device::take_races(), std::vector<std::string>{}); }

  static void SetUpTestSuite() { test_device::install(); }

  std::shared_ptr<const DeviceStreams> streams_ =
      std::make_shared<const DeviceStreams>(test_device::device());
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>(2, streams_);
};

TEST_F(OnDevice, UnitsOfASizeTakeTurnsWithTwoBuffers) {
  std::vector<const void*> places;
  for (int i = 0; i < 6; ++i) {
    ResizableStorage next = unit();
    places.push_back(gather(next));
    use(next);
  }
  EXPECT_NE(places[0], places[1]) << "the first is in use when the second is gathered";
  EXPECT_EQ(places,
            (std::vector{places[0], places[1], places[0], places[1], places[0], places[1]}));
  expect_no_race();
}

TEST_F(OnDevice, AThirdUnitInUseGetsMemoryOfItsOwn) {
  ResizableStorage first = unit();
  ResizableStorage second = unit();
  ResizableStorage third = unit();
  const void* const place = gather(first);
  EXPECT_NE(gather(second), place);
  EXPECT_NE(gather(third), place);
  for (ResizableStorage* used : {&first, &second, &third}) use(*used);
  EXPECT_EQ(pool_->idle_bytes(), 2 * kElements * sizeof(float)) << "two are kept";
  expect_no_race();
}

TEST_F(OnDevice, AUnitOfAnotherSizeComesBackToItsOnlyBuffer) {
  ResizableStorage odd = unit(kFewerElements);
  const void* const place = gather(odd);
  use(odd);
  ResizableStorage other = unit();
  gather(other);
  use(other);
  EXPECT_EQ(gather(odd), place);
  use(odd);
  expect_no_race();
}

// What the pool lets go is not handed out again before it has been computed with.
TEST_F(OnDevice, WhatIsNotKeptWaitsForItsLastUseToo) {
  pool_ = std::make_shared<BufferPool>(0, streams_);
  for (int i = 0; i < 4; ++i) {
    ResizableStorage next = unit();
    gather(next);
    use(next);
  }
  EXPECT_EQ(pool_->idle_bytes(), 0U);
  expect_no_race();
}

TEST(OnTheHost, OneBufferIsEnough) {
  const auto pool = std::make_shared<BufferPool>(2);
  ResizableStorage first(kElements, at::kFloat, pool);
  ResizableStorage second(kElements, at::kFloat, pool);
  first.allocate();
  const void* const place = first.tensor().const_data_ptr();
  first.free();
  second.allocate();
  EXPECT_EQ(second.tensor().const_data_ptr(), place);
}

}  // namespace
}  // namespace phalanx::fsdp::testing
