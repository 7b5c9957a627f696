// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/device_memory.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/trainer/memory/stand_in_device.h"

namespace phalanx {
namespace {

TEST(DeviceMemory, IsWhatTheDeviceAndItsAllocatorSay) {
  const StandInDevice device(
      {.total = 100, .free = 40, .reserved = 50, .in_tensors = 20, .most_in_tensors = 45});
  const auto memory = device_memory(StandInDevice::kDevice);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, 100);
  EXPECT_EQ(memory->free, 40);
  EXPECT_EQ(memory->reserved, 50);
  EXPECT_EQ(memory->in_tensors, 20);
  EXPECT_EQ(memory->most_in_tensors, 45);
}

TEST(DeviceMemory, OfTheCpuIsNothing) { EXPECT_FALSE(device_memory(at::kCPU)); }

TEST(DeviceMemory, OfADeviceThatDoesNotAnswerIsAnError) {
  StandInDevice device({.total = 100});
  device.fail();
  EXPECT_THROW(device_memory(StandInDevice::kDevice), std::exception);
}

}  // namespace
}  // namespace phalanx
