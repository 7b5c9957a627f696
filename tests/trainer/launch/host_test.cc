#include "trainer/launch/host.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>

#include "tests/trainer/core/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// A file system's beginning with the files that are looked at.
class Host : public testing::Test {
 protected:
  Host() { ::unsetenv("CUDA_VISIBLE_DEVICES"); }
  ~Host() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }

  void file(const std::string& path, const std::string& text = "") const {
    fs::create_directories((root_ / path).parent_path());
    spill(root_ / path, text);
  }
  int64_t gpus_with(const char* visible) const {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    return usable_gpus(root_.path());
  }

  TemporaryFolder root_;
};

int64_t own_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

TEST_F(Host, CountsGpusByTheDriversFiles) {
  EXPECT_EQ(usable_gpus(root_.path()), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia",
                           "nvidia-modeset", "nvidia0x", "null"}) {
    file("dev/" + std::string(name));
  }
  fs::create_directories(root_ / "dev/nvidia-caps");
  EXPECT_EQ(usable_gpus(root_.path()), 3);
}

TEST_F(Host, ReadsTheListOfVisibleGpus) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2"}) file("dev/" + std::string(name));
  EXPECT_EQ(gpus_with("0,2"), 2);
  EXPECT_EQ(gpus_with("1"), 1);
  EXPECT_EQ(gpus_with(""), 0);
  EXPECT_EQ(gpus_with("-1"), 0);
  EXPECT_EQ(gpus_with("1,-1,2"), 1);
  EXPECT_EQ(gpus_with("GPU-8932f937,GPU-1f2e"), 2);
  EXPECT_EQ(gpus_with("0,1,2,3,4"), 3);
}

TEST_F(Host, CountsCoresOfTheAffinity) {
  EXPECT_EQ(usable_cores(root_.path()), own_cores());
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores(root_.path()), 1);
  ::sched_setaffinity(0, sizeof(before), &before);
}

TEST_F(Host, HeedsTheQuotasOfControlGroups) {
  file("proc/self/cgroup", "0::/jobs/mine\n");
  file("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root_.path()), own_cores());
  file("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  EXPECT_EQ(usable_cores(root_.path()), 1);
  file("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cores(root_.path()), 1);
}

TEST_F(Host, HeedsTheQuotaOfAContainerThatHidesItsGroup) {
  file("proc/self/cgroup", "12:cpu:/old\n0::/../../hidden\n");
  file("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable_cores(root_.path()), 1);
}

TEST(ThisHost, HasACore) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), own_cores());
}

}  // namespace
}  // namespace phalanx
