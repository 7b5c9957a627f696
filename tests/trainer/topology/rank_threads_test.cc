// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

/// `ranks` ranks on so many cores, each with two hardware threads.
RankCores on_cores(int64_t cores, int64_t ranks) {
  RankCores shared{.ranks = ranks};
  for (int64_t index = 0; index < 2 * cores; ++index) {
    shared.units.push_back({.index = index, .core = index / 2});
  }
  return shared;
}

/// A host whose processes share a quota, and the variables of a process.
class RankThreads : public testing::Test {
 protected:
  RankThreads() {
    ::unsetenv("OMP_NUM_THREADS");
    ::unsetenv("PHALANX_OMP_NUM_THREADS");
  }
  ~RankThreads() override {
    ::unsetenv("OMP_NUM_THREADS");
    ::unsetenv("PHALANX_OMP_NUM_THREADS");
  }

  void set_quota(int64_t threads) const {
    std::filesystem::create_directories(root_ / "proc/self");
    std::filesystem::create_directories(root_ / "sys/fs/cgroup");
    spill(root_ / "proc/self/cgroup", "0::/\n");
    spill(root_ / "sys/fs/cgroup/cpu.max", std::to_string(threads * 100'000) + " 100000\n");
  }

  int64_t share(const RankCores& cores, int64_t ranks_of_host) const {
    return threads_of_rank(cores, ranks_of_host, root_.path());
  }

  std::string warning(int64_t threads, const RankCores& cores, int64_t ranks_of_host) const {
    return too_many_threads(threads, cores, ranks_of_host, root_.path()).value_or("");
  }

  static std::string variable() {
    const char* text = std::getenv("OMP_NUM_THREADS");
    return text == nullptr ? "unset" : text;
  }

  static std::optional<int64_t> chosen(const std::string& text) {
    ::setenv("OMP_NUM_THREADS", text.c_str(), 1);
    return chosen_threads();
  }

  static std::string error_of(const std::string& text) {
    try {
      chosen(text);
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  }

  TemporaryFolder root_;
};

TEST_F(RankThreads, ShareCoresAndNotHardwareThreads) {
  EXPECT_EQ(share(on_cores(4, 1), 1), 4);
  EXPECT_EQ(share(on_cores(4, 2), 2), 2);
  EXPECT_EQ(share(on_cores(4, 100), 100), 1);
}

// Two ranks on each of two nodes of eight cores, in a container that may use eight.
TEST_F(RankThreads, ShareAQuotaWithAllRanksOfTheHost) {
  EXPECT_EQ(share(on_cores(8, 2), 4), 4);
  set_quota(8);
  EXPECT_EQ(share(on_cores(8, 2), 4), 2);
  EXPECT_EQ(share(on_cores(8, 2), 16), 1);
}

TEST_F(RankThreads, AreChosenByTheUserAndNotByALauncherOfOurs) {
  EXPECT_EQ(chosen_threads(), std::nullopt);
  share_threads(16);
  EXPECT_EQ(variable(), "16");
  EXPECT_EQ(chosen_threads(), std::nullopt);
  share_threads(8);  // A launcher in a rank of a launcher, or a rank that is bound.
  EXPECT_EQ(variable(), "8");
  EXPECT_EQ(chosen("4"), 4);
  share_threads(8);
  EXPECT_EQ(variable(), "4");
}

TEST_F(RankThreads, AreReadAsOpenMpReadsThem) {
  EXPECT_EQ(chosen(""), std::nullopt);
  EXPECT_EQ(chosen(" 4 , 2"), 4);
  EXPECT_EQ(chosen("4,2"), 4);
  for (const char* text :
       {"many", "0", "-2", "4 2", "4x", " ", "99999999999", "2147483648", "99999999999999999999"}) {
    EXPECT_EQ(error_of(text), "OMP_NUM_THREADS is '" + std::string(text) +
                                  "': write a whole number from 1 to 2147483647, or unset it");
  }
}

TEST_F(RankThreads, TooManyAreTold) {
  EXPECT_EQ(warning(2, on_cores(4, 2), 2), "");
  EXPECT_EQ(warning(1, on_cores(1, 2), 2), "");
  EXPECT_EQ(warning(3, on_cores(4, 2), 2),
            "2 ranks of 3 threads each (OMP_NUM_THREADS) share cores 0-7: 4 cores of NUMA node 0: "
            "they will wait for each other");
  EXPECT_THAT(warning(5, on_cores(4, 1), 2), HasSubstr("a rank of 5 threads (OMP_NUM_THREADS) has "
                                                       "cores 0-7: 4 cores of NUMA node 0"));
  set_quota(6);
  EXPECT_EQ(warning(2, on_cores(4, 2), 4),
            "4 ranks of 2 threads each (OMP_NUM_THREADS) share a quota of control groups that "
            "allows 6 at a time: they will wait for each other");
}

}  // namespace
}  // namespace phalanx
