// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/bind_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Two NUMA nodes of four cores, and GPUs.
class BindRank : public testing::Test {
 protected:
  BindRank() {
    ::setenv("HWLOC_SYNTHETIC", "pack:2 [numa] core:4 pu:1", 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  ~BindRank() override {
    ::unsetenv("HWLOC_SYNTHETIC");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }

  void file(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    spill(root_ / path, text);
  }

  void gpu(int minor, int node) const {
    const std::string address = "0000:0" + std::to_string(minor + 1) + ":00.0";
    file("dev/nvidia" + std::to_string(minor), "");
    file("proc/driver/nvidia/gpus/" + address + "/information",
         "Device Minor: \t " + std::to_string(minor) + "\n");
    file("sys/bus/pci/devices/" + address + "/numa_node", std::to_string(node) + "\n");
  }

  std::string cores(NumaBinding binding, const std::vector<int64_t>& local_ranks,
                    int64_t local_rank) const {
    try {
      return describe(
          cores_of_rank(binding,
                        {.local_ranks = local_ranks, .local_rank = local_rank, .on_gpus = true},
                        root_.path())
              .units);
    } catch (const UserError& error) {
      return error.what();
    }
  }

  TemporaryFolder root_;
};

TEST_F(BindRank, TakesTheNodeOfItsGpu) {
  gpu(0, 1);
  gpu(1, 0);
  EXPECT_EQ(cores(NumaBinding::automatic, {0, 1}, 0), "4-7: 4 cores of NUMA node 1");
  EXPECT_EQ(cores(NumaBinding::automatic, {0, 1}, 1), "0-3: 4 cores of NUMA node 0");
  ::setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
  EXPECT_EQ(cores(NumaBinding::automatic, {0, 1}, 0), "0-3: 4 cores of NUMA node 0");
}

TEST_F(BindRank, TakesTheGpuThatItSeesAlone) {
  gpu(0, 1);
  EXPECT_EQ(cores(NumaBinding::exclusive, {0, 1}, 0), "4-5: 2 cores of NUMA node 1");
  EXPECT_EQ(cores(NumaBinding::exclusive, {0, 1}, 1), "6-7: 2 cores of NUMA node 1");
}

TEST_F(BindRank, IsNotBoundWhereNothingTellsTheNode) {
  gpu(0, -1);
  EXPECT_EQ(cores(NumaBinding::automatic, {0}, 0), "0-7: 8 cores of NUMA nodes 0, 1");
  EXPECT_EQ(cores(NumaBinding::none, {0}, 0), "0-7: 8 cores of NUMA nodes 0, 1");
  EXPECT_THAT(cores(NumaBinding::node, {0}, 0),
              HasSubstr("nothing tells which NUMA node the GPU of local rank 0 is on"));
}

TEST_F(BindRank, NamesTheRankWhoseNodeIsUnknown) {
  gpu(0, 0);
  gpu(1, -1);
  EXPECT_THAT(cores(NumaBinding::node, {0, 1}, 0), HasSubstr("the GPU of local rank 1 is on"));
}

// Others of the host may use other cores, and ranks need not be in the order of local ranks.
TEST_F(BindRank, IsFoundByTheNumberOfItsLauncher) {
  gpu(0, 0);
  gpu(1, 0);
  gpu(2, 1);
  gpu(3, 1);
  EXPECT_EQ(cores(NumaBinding::node, {1, 3}, 3), "4-7: 4 cores of NUMA node 1");
  EXPECT_EQ(cores(NumaBinding::exclusive, {2, 3}, 3), "6-7: 2 cores of NUMA node 1");
  EXPECT_THROW(cores(NumaBinding::node, {0, 1}, 2), std::logic_error);
}

TEST_F(BindRank, KnowsTheNodeOfAHostThatHasOne) {
  ::setenv("HWLOC_SYNTHETIC", "core:4 pu:1", 1);
  gpu(0, -1);
  gpu(1, -1);
  EXPECT_EQ(cores(NumaBinding::exclusive, {0, 1}, 1), "2-3: 2 cores of NUMA node 0");
}

}  // namespace
}  // namespace phalanx
