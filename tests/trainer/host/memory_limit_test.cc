// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMebibyte = 1 << 20;

/// A root with the kernel's files of a host.
class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() { write("proc/meminfo", "MemTotal: 99 kB\nMemAvailable:   4194304 kB\n"); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  void write_second(const std::string& group, int64_t most, int64_t now, int64_t files) const {
    const fs::path folder = "sys/fs/cgroup/" + group;
    write(folder / "memory.max", std::to_string(most * kMebibyte) + "\n");
    write(folder / "memory.current", std::to_string(now * kMebibyte) + "\n");
    write(folder / "memory.stat", "anon 7\nfile 9\ninactive_file " +
                                      std::to_string(files * kMebibyte) + "\nactive_file 0\n");
  }

  fs::path root_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MemoryLimitTest, TheHostsMemoryIsSharedByItsRanks) {
  const auto limit = memory_limit(4, root_);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 1024 * kMebibyte);
  EXPECT_TRUE(limit->is_shared);
  EXPECT_EQ(limit->source, "the host's free memory, shared by the ranks");
}

TEST_F(MemoryLimitTest, PagesOfFilesInAGroupAreFree) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  write_second("jobs/one", 1000, 900, 600);
  const auto limit = memory_limit(2, root_);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 350 * kMebibyte);
  EXPECT_EQ(limit->source, "the memory cgroup, shared by the ranks");
}

TEST_F(MemoryLimitTest, TheTightestGroupAroundIsTheLimit) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  write_second("jobs/one", 1000, 0, 0);
  write_second("jobs", 800, 500, 0);
  EXPECT_EQ(memory_limit(1, root_)->bytes, 300 * kMebibyte);
  write("sys/fs/cgroup/jobs/memory.max", "max\n");
  EXPECT_EQ(memory_limit(1, root_)->bytes, 1000 * kMebibyte);
}

TEST_F(MemoryLimitTest, TheFirstVersionHasATreeOfItsOwn) {
  write("proc/self/cgroup", "5:devices:/\n4:hugetlb,memory:/slurm/job:7\n0::/\n");
  const fs::path folder = "sys/fs/cgroup/memory/slurm/job:7";
  write(folder / "memory.limit_in_bytes", std::to_string(500 * kMebibyte));
  write(folder / "memory.usage_in_bytes", std::to_string(200 * kMebibyte));
  write(folder / "memory.stat", "inactive_file 0\ntotal_inactive_file 1048576\n");
  EXPECT_EQ(memory_limit(1, root_)->bytes, 301 * kMebibyte);
}

// In a container the path may be the host's.
TEST_F(MemoryLimitTest, AGroupThatIsNotThereHasThoseAroundIt) {
  write("proc/self/cgroup", "4:memory:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(100 * kMebibyte));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "0");
  EXPECT_EQ(memory_limit(1, root_)->bytes, 100 * kMebibyte);
}

TEST_F(MemoryLimitTest, WithoutTheKernelsFilesThereIsNone) {
  EXPECT_FALSE(memory_limit(1, root_ / "elsewhere"));
}

}  // namespace
}  // namespace phalanx
