// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/base/user_error.h"
#include "trainer/host/gpus.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Environment with_local_rank(int64_t local_rank) {
  Environment environment;
  environment.rank = environment.local_rank = local_rank;
  environment.world_size = environment.local_world_size = local_rank + 1;
  return environment;
}

// That this host has no GPU for a local rank.
auto too_few_gpus(int64_t local_rank, int64_t gpus) {
  return ThrowsMessage<UserError>(AllOf(HasSubstr(fmt::format("local rank {}", local_rank)),
                                        HasSubstr(fmt::format("{} GPUs", gpus))));
}

// First: LibTorch's answer is for the whole process.
TEST(Device, IsAGpuOfItsOwnForEachRankWhereThereAreSome) {
  const int64_t gpus = usable_gpus();
  if (gpus == 0) GTEST_SKIP() << "no NVIDIA GPU on this host: not tested";
  const at::Device last = device_of_rank(with_local_rank(gpus - 1), DeviceChoice::automatic);
  EXPECT_EQ(last, at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpus - 1)));
  EXPECT_THAT(describe_device(last), AllOf(HasSubstr("GiB"), HasSubstr("NCCL")));
  EXPECT_THAT([&] { device_of_rank(with_local_rank(gpus), DeviceChoice::automatic); },
              too_few_gpus(gpus, gpus));
  seed_everything(1, last);
  EXPECT_TRUE(rng_states(last).contains("cuda"));
}

TEST(Device, IsTheGpuOfTheLocalRank) {
  EXPECT_EQ(gpu_of_rank(with_local_rank(1), 2), 1);
  EXPECT_THAT([] { gpu_of_rank(with_local_rank(2), 2); }, too_few_gpus(2, 2));
}

TEST(Device, IsTheOneGpuThatALauncherShowsARank) {
  Environment environment = with_local_rank(2);
  environment.sees_own_gpu = true;
  EXPECT_EQ(gpu_of_rank(environment, 1), 0);
  EXPECT_EQ(gpu_of_rank(environment, 4), 2);
}

TEST(Device, IsTheCpuWhereThatIsAskedFor) {
  EXPECT_EQ(device_of_rank(with_local_rank(3), DeviceChoice::cpu), at::Device(at::kCPU));
  EXPECT_EQ(describe_device(at::kCPU), "cpu");
}

TEST(Device, IsTheCpuWithoutGpus) {
  if (usable_gpus() > 0) GTEST_SKIP() << "this host has GPUs";
  EXPECT_EQ(device_of_rank(with_local_rank(0), DeviceChoice::automatic), at::Device(at::kCPU));
}

TEST(Device, IsRefusedWhereCudaIsAskedForAndThereIsNone) {
  if (usable_gpus() > 0) GTEST_SKIP() << "this host has GPUs";
  EXPECT_THAT([] { device_of_rank(with_local_rank(0), DeviceChoice::cuda); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("there is no GPU to compute on"),
                                             HasSubstr("parallel.device=cpu"))));
}

}  // namespace
}  // namespace phalanx
