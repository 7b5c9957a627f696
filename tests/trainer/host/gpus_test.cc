// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// A file system's beginning with the driver's files.
class Gpus : public testing::Test {
 protected:
  Gpus() { ::unsetenv("CUDA_VISIBLE_DEVICES"); }
  ~Gpus() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }

  void file(const std::string& path) const {
    fs::create_directories((root_ / path).parent_path());
    spill(root_ / path, "");
  }
  int64_t gpus_with(const char* visible) const {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    return usable_gpus(root_.path());
  }

  std::vector<std::string> addresses_with(const char* visible) const {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    return gpu_addresses(root_.path());
  }

  TemporaryFolder root_;
};

using Addresses = std::vector<std::string>;

TEST_F(Gpus, AreCountedByTheDriversFiles) {
  EXPECT_EQ(usable_gpus(root_.path()), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia",
                           "nvidia-modeset", "nvidia0x", "null"}) {
    file("dev/" + std::string(name));
  }
  fs::create_directories(root_ / "dev/nvidia-caps");
  EXPECT_EQ(usable_gpus(root_.path()), 3);
}

TEST_F(Gpus, AreThoseOfTheListOfVisibleOnes) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2"}) file("dev/" + std::string(name));
  EXPECT_EQ(gpus_with("0,2"), 2);
  EXPECT_EQ(gpus_with("1"), 1);
  EXPECT_EQ(gpus_with(""), 0);
  EXPECT_EQ(gpus_with("-1"), 0);
  EXPECT_EQ(gpus_with("NoDevFiles"), 0);
  EXPECT_EQ(gpus_with("1,-1,2"), 1);
  EXPECT_EQ(gpus_with("GPU-8932f937,GPU-1f2e"), 2);
  EXPECT_EQ(gpus_with("0,1,2,3,4"), 3);
}

TEST_F(Gpus, HaveThePciAddressesThatCudaCountsBy) {
  const auto gpu = [&](const std::string& address, int minor) {
    file("dev/nvidia" + std::to_string(minor));
    const std::string folder = "proc/driver/nvidia/gpus/" + address;
    file(folder + "/information");
    spill(root_ / folder / "information", "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-" +
                                              std::to_string(minor) + "f0e\nDevice Minor: \t " +
                                              std::to_string(minor) + "\n");
  };
  EXPECT_EQ(gpu_addresses(root_.path()), Addresses());
  gpu("0000:47:00.0", 0);
  gpu("0000:07:00.0", 2);
  gpu("0000:c7:00.0", 1);
  EXPECT_EQ(gpu_addresses(root_.path()),
            (Addresses{"0000:07:00.0", "0000:47:00.0", "0000:c7:00.0"}));
  EXPECT_EQ(addresses_with("2,0"), (Addresses{"0000:c7:00.0", "0000:07:00.0"}));
  EXPECT_EQ(addresses_with("GPU-0f,GPU-2"), (Addresses{"0000:47:00.0", "0000:07:00.0"}));
  EXPECT_EQ(addresses_with("1,-1,0"), Addresses{"0000:47:00.0"});
  EXPECT_EQ(addresses_with("0,3"), Addresses());
  EXPECT_EQ(addresses_with("MIG-0f0e"), Addresses());
  EXPECT_EQ(addresses_with(""), Addresses());
  // A container has the files of its own GPUs alone, and the driver's of all.
  fs::remove(root_ / "dev/nvidia0");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(gpu_addresses(root_.path()), (Addresses{"0000:07:00.0", "0000:c7:00.0"}));
}

TEST_F(Gpus, CanBeHidden) {
  file("dev/nvidia0");
  EXPECT_EQ(usable_gpus(root_.path()), 1);
  hide_gpus();
  EXPECT_EQ(usable_gpus(root_.path()), 0);
}

}  // namespace
}  // namespace phalanx
