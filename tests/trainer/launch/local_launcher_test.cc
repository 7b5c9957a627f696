// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/launchers/local_launcher/local_launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tests/trainer/registered.h"
#include "trainer/config/tree/schema.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

TEST(LocalLauncher, RunsOneRankInPlace) {
  Environment seen;
  seen.rank = 7;
  pid_t pid = 0;
  const auto launcher = make_registered<Launcher>("local", "{processes: 1}");
  const RankOutcome outcome = launcher->launch([&](const Environment& environment) {
    seen = environment;
    pid = ::getpid();
    return RankOutcome{5, "words", true};
  });
  EXPECT_EQ(outcome, (RankOutcome{5, "words", true}));
  EXPECT_EQ(seen, Environment{});
  EXPECT_EQ(pid, ::getpid());
}

TEST(LocalLauncher, PassesASingleRanksExceptionOn) {
  LocalLauncher launcher({.processes = 1});
  EXPECT_THROW(
      launcher.launch([](const Environment&) -> RankOutcome { throw std::runtime_error("lost"); }),
      std::runtime_error);
}

TEST(LocalLauncher, ForksSeveral) {
  const pid_t pid = ::getpid();
  const RankOutcome outcome =
      LocalLauncher({.processes = 3}).launch([&](const Environment& environment) {
        const bool right = environment.world_size == 3 && ::getppid() == pid;
        return right ? RankOutcome{} : RankOutcome{1, "wrong"};
      });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(LocalLauncher, ChoosesTheNumberByItself) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const int64_t expected = std::min(usable_cores(), int64_t{8});
  const auto launcher = make_registered<Launcher>("local", "{processes: auto}");
  const RankOutcome outcome = launcher->launch([&](const Environment& environment) {
    return environment.world_size == expected ? RankOutcome{} : RankOutcome{1, "wrong"};
  });
  EXPECT_EQ(outcome, RankOutcome{});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(LocalLauncher, DescribesItsConfig) {
  const auto& declaration = config::declaration<LocalLauncher::Config>();
  EXPECT_EQ(declaration.find("processes")->type.text(), "an integer in [1, 4096], or auto");
  EXPECT_EQ(declaration.find("processes")->default_value.text, "1");
  EXPECT_TRUE(declaration.find("processes")->resume_may_change);
  EXPECT_THROW(make_registered<Launcher>("local", "{processes: 0}"), std::runtime_error);
}

}  // namespace
}  // namespace phalanx
