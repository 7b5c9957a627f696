// SPDX-License-Identifier: Apache-2.0
// Replicas on devices: what their threads have of the one that starts them.

#include "trainer/parallel/replicas/replica_threads.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "tests/test_device/test_device.h"

namespace phalanx::test_device {
namespace {

// What a trainer computes beside its default stream would have no order with the replicas'.
TEST(ReplicaThreads, ComputeOnTheStreamsOfWhoStartsThem) {
  install();
  const std::array<at::Device, 2> devices{device(0), device(1)};
  const c10::impl::VirtualGuardImpl guard(kType);
  const c10::Stream of_second = pool_stream(1, /*high_priority=*/false);
  const c10::Stream before = guard.exchangeStream(of_second);
  const c10::StreamGuard of_first(pool_stream(0, /*high_priority=*/false));
  std::array<int64_t, 2> streams{};
  std::array<int, 2> current{};
  run_in_threads(devices, [&](size_t i) {
    streams.at(i) = current_stream(static_cast<int>(i)).id();
    current.at(i) = current_device();
  });
  EXPECT_EQ(streams, (std::array<int64_t, 2>{of_first.current_stream().id(), of_second.id()}));
  EXPECT_EQ(current, (std::array<int, 2>{0, 1}));
  EXPECT_EQ(current_stream(0).id(), of_first.current_stream().id());
  EXPECT_EQ(current_stream(1).id(), of_second.id());
  EXPECT_EQ(current_device(), 0);
  guard.exchangeStream(before);
}

}  // namespace
}  // namespace phalanx::test_device
