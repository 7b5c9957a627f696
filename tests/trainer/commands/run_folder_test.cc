#include "trainer/commands/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/commands/load_config.h"
#include "trainer/config/diagnostics.h"
#include "trainer/config/parse.h"
#include "trainer/config/user_error.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

class RunFolder : public CommandTest {
 protected:
  // The resolved config of a run in `run`, with these overrides.
  static config::Node resolved(std::vector<std::string> overrides = {}) {
    overrides.insert(overrides.begin(), "tiny.yaml");
    const UserConfig user = load_config(overrides);
    return resolve_config(user, "run");
  }
  static const config::Declaration& declaration() {
    return TrainerRegistry::instance().at("tiny").declaration();
  }
};

TEST_F(RunFolder, TheFirstFreeOneIsTaken) {
  EXPECT_EQ(free_run_folder("some"), "runs/some/run_0");
  EXPECT_FALSE(fs::exists("runs")) << "nothing is created";
  fs::create_directories("runs/some/run_0");
  fs::create_directories("runs/some/run_1");
  fs::create_directories("runs/some/run_3");
  EXPECT_EQ(free_run_folder("some"), "runs/some/run_2");
  EXPECT_EQ(free_run_folder("other"), "runs/other/run_0");
}

TEST_F(RunFolder, IsCreatedWithItsParentsOnce) {
  EXPECT_TRUE(create_run_folder("runs/some/run_0"));
  EXPECT_TRUE(fs::is_directory("runs/some/run_0"));
  EXPECT_FALSE(create_run_folder("runs/some/run_0"));
  EXPECT_TRUE(create_run_folder("beside"));
}

TEST_F(RunFolder, OneOfManyWhoWantItGetsIt) {
  constexpr int kRounds = 50;
  constexpr int kThreads = 4;
  std::vector<std::atomic<int>> winners(kRounds);
  std::latch ready(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        for (int round = 0; round < kRounds; ++round) {
          const auto folder = fs::path("runs/raced") / std::to_string(round) / "run_0";
          if (create_run_folder(folder)) ++winners[static_cast<size_t>(round)];
        }
      });
    }
  }
  for (const auto& winner : winners) EXPECT_EQ(winner, 1);
}

TEST_F(RunFolder, AFileInItsPlaceIsAUsersMistake) {
  write("file", "");
  EXPECT_THAT([] { create_run_folder("file/run_0"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("file/run_0"), HasSubstr("exp_dir"))));
}

TEST_F(RunFolder, ItsConfigReadsBack) {
  fs::create_directory("run");
  const config::Node config = resolved({"optimizer.lr=0.25"});
  write_config("run", config);
  EXPECT_THAT(dir_.names("run"), ElementsAre("config.yaml")) << "nothing is left beside it";
  config::Diagnostics diagnostics;
  const config::Node read_back = config::read_file("run/config.yaml", diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  EXPECT_TRUE(config::same_value(read_back, config));
  EXPECT_THAT(read("run/config.yaml"),
              AllOf(HasSubstr("# command line"), HasSubstr("# tiny.yaml:")));
}

TEST_F(RunFolder, AConfigThatCannotBeWrittenIsAUsersMistake) {
  write("run", "a file in place of the folder");
  EXPECT_THAT([] { write_config("run", resolved()); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("run/config.yaml"), HasSubstr("exp_dir"))));
  EXPECT_THAT(dir_.names("."), ElementsAre("run", "tiny.yaml"));
}

TEST_F(RunFolder, AnEarlierConfigMayDifferInWhatAResumeMayChange) {
  EXPECT_THAT(check_against_earlier("run", declaration(), resolved()), IsEmpty()) << "none yet";
  fs::create_directory("run");
  write_config("run", resolved());
  EXPECT_THAT(check_against_earlier("run", declaration(), resolved()), IsEmpty());
  EXPECT_THAT(check_against_earlier("run", declaration(),
                                    resolved({"training.max_steps=9", "exp_name=other"})),
              ElementsAre("exp_name: was tiny, now other", "training.max_steps: was 8, now 9"));
  EXPECT_THAT(
      check_against_earlier("run", declaration(), resolved({"optimizer.lr=0.5", "exp_name=tiny"})),
      ElementsAre("optimizer.lr: was 0.1, now 0.5"))
      << "a registered class's field";
}

TEST_F(RunFolder, AnEarlierConfigMayNotDifferInAnythingElse) {
  fs::create_directory("run");
  write_config("run", resolved());
  EXPECT_THAT(
      [] {
        check_against_earlier("run", declaration(),
                              resolved({"training.seed=5", "training.max_steps=9", "model=parrot",
                                        "use_double_weight_precision=true"}));
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("run"), HasSubstr("training.seed: was 0, now 5"),
                                     HasSubstr("model.name: was linear, now parrot"),
                                     HasSubstr("use_double_weight_precision: was false, now true"),
                                     Not(HasSubstr("max_steps")))));
}

TEST_F(RunFolder, AnEarlierConfigMayDifferInWhatAnOverrideForces) {
  fs::create_directory("run");
  write_config("run", resolved());
  const std::vector<std::string> overrides = {"++training.seed=5", "model=parrot"};
  EXPECT_THAT(check_against_earlier("run", declaration(),
                                    resolved({"training.seed=5", "exp_name=tiny"}), overrides),
              ElementsAre("training.seed: was 0, now 5"));
  EXPECT_THAT(
      [&] {
        check_against_earlier("run", declaration(), resolved({"model=parrot", "exp_name=tiny"}),
                              overrides);
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("model.name"), HasSubstr("++key=value"))));
}

TEST_F(RunFolder, AnUnfinishedRunIsTold) {
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  EXPECT_EQ(run({"tiny.yaml", "exp_name=tiny", "task.fails_at=6"}).code, 1);
  const auto message = unfinished_run("tiny");
  ASSERT_TRUE(message);
  EXPECT_THAT(*message, AllOf(HasSubstr("runs/tiny/run_0"), HasSubstr("step 4"),
                              HasSubstr("exp_dir=runs/tiny/run_0")));
  EXPECT_EQ(unfinished_run("other"), std::nullopt);
}

TEST_F(RunFolder, AFinishedRunIsNot) {
  EXPECT_EQ(run({"tiny.yaml"}).code, 0);
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  // Its last step ends an epoch and is a multiple of save_every_n_steps: 6 of 3 steps an epoch.
  EXPECT_EQ(run({"tiny.yaml", "exp_name=epochs", "training={max_epochs: 2, max_steps: null}"}).code,
            0);
  EXPECT_EQ(unfinished_run("epochs"), std::nullopt);
}

TEST_F(RunFolder, ADamagedEarlierRunDoesNotStopANewOne) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name=tiny", "task.fails_at=6"}).code, 1);
  write("runs/tiny/run_0/config.yaml", "training: [\n");
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
  EXPECT_EQ(run({"tiny.yaml"}).code, 0);
  EXPECT_TRUE(fs::exists("runs/tiny/run_1/config.yaml"));
}

}  // namespace
}  // namespace phalanx::tiny
