#include "trainer/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>

#include "tests/trainer/core/io/temporary_folder.h"

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

int64_t own_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
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
