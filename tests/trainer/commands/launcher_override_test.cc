// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/launcher_override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using List = std::vector<std::string>;

TEST(LauncherOverride, OfTheNumberOfRanksIsRefusedWithTheFlag) {
  for (const char* override :
       {"launcher.processes=2", "+launcher.processes=2", "++launcher.processes=2"}) {
    EXPECT_THAT(
        [&] {
          refuse_launcher_overrides(List{"my.yaml", "optimizer.lr=1", override});
        },
        ThrowsMessage<UserError>(
            AllOf(HasSubstr(std::string(override) + " has no effect"),
                  HasSubstr("write --nproc-per-node=2 instead, before the config"))));
  }
}

TEST(LauncherOverride, OfNoNumberOfRanksNamesTheFlagsWordForThat) {
  EXPECT_THAT(
      [] {
        refuse_launcher_overrides(List{"my.yaml", "launcher.processes=null"});
      },
      ThrowsMessage<UserError>(HasSubstr("write --nproc-per-node=auto instead")));
}

TEST(LauncherOverride, OfAnythingElseInTheSectionIsRefusedToo) {
  for (const char* override :
       {"launcher=slurm", "launcher.name=slurm", "launcher={processes: 2}"}) {
    EXPECT_THAT(
        [&] {
          refuse_launcher_overrides(List{"my.yaml", override});
        },
        ThrowsMessage<UserError>(HasSubstr("leave it out")));
  }
}

TEST(LauncherOverride, OtherArgumentsPass) {
  refuse_launcher_overrides(List{});
  refuse_launcher_overrides(List{"launcher.processes=2"});  // a file of this name
  refuse_launcher_overrides(List{"my.yaml", "launcher", "~launcher", "launchers.x=1",
                                 "task.launcher.processes=2",
                                 "about.description=launcher.processes=2", "++", "=", "more.yaml"});
}

}  // namespace
}  // namespace phalanx
