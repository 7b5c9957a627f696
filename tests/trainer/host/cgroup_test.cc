// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ControlGroups : public testing::Test {
 protected:
  void process_is_in(const std::string& groups) const {
    std::filesystem::create_directories(root_ / "proc/self");
    spill(root_ / "proc/self/cgroup", groups);
  }

  TemporaryFolder root_;
  std::filesystem::path mount_ = root_ / "sys/fs/cgroup";
};

TEST_F(ControlGroups, OfVersionTwoAreFoundInnermostFirst) {
  process_is_in("4:memory:/elsewhere\n0::/jobs/mine\n");
  EXPECT_THAT(control_groups("", root_.path()),
              ElementsAre(mount_ / "jobs/mine", mount_ / "jobs", mount_));
}

TEST_F(ControlGroups, OfVersionOneHaveATreeForEachController) {
  process_is_in("5:cpuset:/other\n4:cpu,cpuacct:/slurm/job:7\n0::/\n");
  EXPECT_THAT(control_groups("cpu", root_.path()),
              ElementsAre(mount_ / "cpu/slurm/job:7", mount_ / "cpu/slurm", mount_ / "cpu"));
  EXPECT_THAT(control_groups("", root_.path()), ElementsAre(mount_));
}

TEST_F(ControlGroups, AreNoneWhereTheProcessIsInNone) {
  EXPECT_THAT(control_groups("", root_.path()), IsEmpty()) << "no /proc";
  process_is_in("4:memory:/\n1:name=systemd:/\n");
  EXPECT_THAT(control_groups("cpu", root_.path()), IsEmpty());
  EXPECT_THAT(control_groups("", root_.path()), IsEmpty());
}

}  // namespace
}  // namespace phalanx
