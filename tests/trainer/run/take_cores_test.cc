// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/take_cores.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/host/cores.h"
#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// A host of eight caches with two cores each, which hwloc makes up: nothing is bound in truth.
class TakeCores : public testing::Test {
 protected:
  TakeCores() {
    ::setenv("HWLOC_SYNTHETIC", "pack:1 [numa] l3:8 core:2 pu:1", 1);
    ::unsetenv("OMP_NUM_THREADS");
  }
  ~TakeCores() override {
    ::unsetenv("HWLOC_SYNTHETIC");
    ::unsetenv("OMP_NUM_THREADS");
  }

  /// The threads of each of two ranks, "2, 2", or an error.
  static std::string threads(NumaBinding binding, const std::filesystem::path& root = "/") {
    return LocalLauncher({.processes = 2})
        .launch([&](const Environment& environment) {
          World world = init_from_env(environment);
          take_cores(world, binding, root);
          const auto all = world.ranks().all_gather(std::to_string(at::get_num_threads()));
          world.close();
          return RankOutcome{.exit_code = 1, .message = all[0] + ", " + all[1]};
        })
        .message;
  }
};

TEST_F(TakeCores, GivesThreadsByTheCoresThatARankIsBoundTo) {
  if (cpu_quota() < 16) GTEST_SKIP() << "a quota leaves fewer threads than the host has cores";
  EXPECT_EQ(threads(NumaBinding::none), "8, 8");
  EXPECT_EQ(threads(NumaBinding::core_complex), "2, 2");
  EXPECT_EQ(threads(NumaBinding::exclusive), "8, 8");
}

// Each is bound to eight cores of its own, and all may use eight at a time.
TEST_F(TakeCores, DividesAQuotaAmongAllRanksOfTheHost) {
  ::setenv("HWLOC_SYNTHETIC", "pack:1 [numa] l3:2 core:8 pu:1", 1);
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "proc/self");
  std::filesystem::create_directories(root / "sys/fs/cgroup");
  spill(root / "proc/self/cgroup", "0::/\n");
  spill(root / "sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(threads(NumaBinding::core_complex, root.path()), "4, 4");
}

TEST_F(TakeCores, LeavesTheNumberToTheUser) {
  ::setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_EQ(threads(NumaBinding::core_complex), "3, 3");
  ::setenv("OMP_NUM_THREADS", "99999999999", 1);
  // A rank that was about to connect may say that the other is gone.
  EXPECT_THAT(threads(NumaBinding::none),
              HasSubstr("OMP_NUM_THREADS is '99999999999': write a whole number from 1 to "
                        "2147483647, or unset it"));
}

/// A single rank, which has said this on standard error; or an error.
std::string warning_of_one(const char* threads) {
  ::setenv("OMP_NUM_THREADS", threads, 1);
  World world = init_from_env(Environment());
  testing::internal::CaptureStderr();
  std::string error;
  try {
    take_cores(world, NumaBinding::automatic);
  } catch (const UserError& refusal) {
    error = refusal.what();
  }
  return error + testing::internal::GetCapturedStderr();
}

TEST_F(TakeCores, ChecksTheNumberOfOneRankToo) {
  EXPECT_THAT(warning_of_one("many"), HasSubstr("OMP_NUM_THREADS is 'many': write a whole number"));
  EXPECT_EQ(warning_of_one("1"), "");
  EXPECT_THAT(warning_of_one("17"),
              StartsWith("warning: a rank of 17 threads (OMP_NUM_THREADS) has "));
}

TEST(ThreadWarnings, NameTheRanksThatFoundSomething) {
  EXPECT_THAT(thread_warnings({"", ""}), IsEmpty());
  EXPECT_THAT(thread_warnings({"a", "a"}), ElementsAre("a"));
  EXPECT_THAT(thread_warnings({"", "a"}), ElementsAre("rank 1: a"));
  EXPECT_THAT(thread_warnings({"a", "b", "", "b"}),
              ElementsAre("rank 0: a", "rank 1 and 1 more: b"));
}

}  // namespace
}  // namespace phalanx
