// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/backends.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace phalanx {
namespace {

// Without ranks to wait for, Gloo connects at once; NCCL would need a GPU.
TEST(Backends, MayBeGlooForGpusToo) {
  ::setenv("PHALANX_GPU_BACKEND", "gloo", 1);
  const auto make = process_group_maker(at::Device(at::kCUDA, 0), "127.0.0.1");
  const auto group = make(c10::make_intrusive<c10d::HashStore>(), 0, 1, std::chrono::seconds(10));
  ::unsetenv("PHALANX_GPU_BACKEND");
  EXPECT_EQ(group->getBackend(c10::kCUDA)->getBackendName(), "gloo");
  EXPECT_EQ(group->getBackend(c10::kCUDA), group->getBackend(c10::kCPU));
}

}  // namespace
}  // namespace phalanx
