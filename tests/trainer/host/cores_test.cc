// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/trainer/host/one_core.h"
#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// A file system's beginning with the files that are looked at.
class Host : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    spill(root_ / path, text);
  }

  TemporaryFolder root_;
};

TEST_F(Host, CountsCoresOfTheAffinity) {
  EXPECT_EQ(usable_hardware_threads(root_.path()), cores_of_affinity());
  const OneCore pinned;
  EXPECT_EQ(usable_hardware_threads(root_.path()), 1);
}

TEST_F(Host, NamesTheCoresOfTheAffinity) {
  EXPECT_EQ(allowed_cores(root_.path()), "");
  file("proc/self/status", "Name:\ttrainer\nCpus_allowed:\t10f\nCpus_allowed_list:\t0-3,8\n");
  EXPECT_EQ(allowed_cores(root_.path()), "0-3,8");
  const OneCore pinned;
  EXPECT_EQ(allowed_cores().find_first_not_of("0123456789"), std::string::npos) << allowed_cores();
}

TEST_F(Host, HeedsTheQuotasOfControlGroups) {
  file("proc/self/cgroup", "0::/jobs/mine\n");
  file("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_hardware_threads(root_.path()), cores_of_affinity());
  file("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  EXPECT_EQ(usable_hardware_threads(root_.path()), 1);
  file("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_hardware_threads(root_.path()), 1);
}

TEST_F(Host, HeedsTheQuotaOfAContainerThatHidesItsGroup) {
  file("proc/self/cgroup", "12:cpu:/old\n0::/../../hidden\n");
  file("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable_hardware_threads(root_.path()), 1);
}

TEST_F(Host, HeedsTheQuotasOfTheFirstVersion) {
  file("proc/self/cgroup", "4:cpu,cpuacct:/jobs/mine\n0::/\n");
  file("sys/fs/cgroup/cpu/jobs/mine/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/jobs/mine/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_hardware_threads(root_.path()), cores_of_affinity());
  file("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "150000\n");
  file("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_hardware_threads(root_.path()), 1);
}

TEST(ThisHost, HasACore) {
  EXPECT_GE(usable_hardware_threads(), 1);
  EXPECT_LE(usable_hardware_threads(), cores_of_affinity());
}

}  // namespace
}  // namespace phalanx
