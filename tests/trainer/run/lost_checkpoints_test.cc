// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/lost_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tests/trainer/commands/command_fixture.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LostCheckpoints : public CommandTest {
 protected:
  LostCheckpoints() { EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0); }

  static Outcome go_on(const std::string& more = "training.max_steps=10") {
    return run({"run/config.yaml", "exp_dir=run", more});
  }

  /// Refused before anything is written.
  static void expect_refused(const std::string& evidence) {
    const std::string starts = read("run/starts.jsonl");
    const Outcome outcome = go_on();
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("has saved checkpoints (" + evidence + "), and none is there"),
                      HasSubstr("checkpoint.resume=if_any to begin anew at step 0")));
    EXPECT_EQ(read("run/starts.jsonl"), starts);
  }
};

TEST_F(LostCheckpoints, WithTheirFolderEndTheStart) {
  fs::remove_all("run/checkpoints");
  expect_refused("ends.jsonl names step-00000008");
}

TEST_F(LostCheckpoints, ThatLatestNamesEndTheStart) {
  for (const auto& entry : fs::directory_iterator("run/checkpoints")) {
    if (entry.is_directory()) fs::remove_all(entry.path());
  }
  expect_refused("checkpoints/latest names step-00000008");
}

TEST_F(LostCheckpoints, AreKnownFromStarts) {
  EXPECT_EQ(go_on().code, 0);
  fs::remove_all("run/checkpoints");
  fs::remove("run/ends.jsonl");
  expect_refused("starts.jsonl has a start at step 8");
}

TEST_F(LostCheckpoints, AreKnownFromRowsAfterAKill) {
  fs::remove_all("run/checkpoints");
  fs::remove("run/ends.jsonl");
  write("run/logs/metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"st");
  EXPECT_EQ(lost_checkpoints("run"), std::nullopt) << "step 2 may not be saved yet";
  write("run/logs/metrics.jsonl", "{\"step\":2}\n{\"step\":3}\n{\"st");
  expect_refused("logs/metrics.jsonl reaches step 3, and the run saves every 2 steps");
}

TEST_F(LostCheckpoints, BeginAnewOnRequest) {
  fs::remove_all("run/checkpoints");
  const Outcome anew = go_on("checkpoint.resume=if_any");
  EXPECT_EQ(anew.code, 0) << anew.errors;
  EXPECT_THAT(anew.output, HasSubstr("are gone (ends.jsonl names step-00000008): it begins again"));
  // With checkpoints it is as auto.
  const Outcome on = go_on();
  EXPECT_EQ(on.code, 0) << on.errors;
  EXPECT_THAT(on.output, Not(HasSubstr("are gone")));
}

TEST_F(LostCheckpoints, AreNotThoseOfARunThatNeverSaved) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=young", "task.fails_at=2"}).code, 1);
  EXPECT_EQ(lost_checkpoints("young"), std::nullopt);
  EXPECT_EQ(run({"young/config.yaml", "exp_dir=young", "task.fails_at=null"}).code, 0);
}

TEST_F(LostCheckpoints, AreThereWhileAReplacementIsCutShort) {
  fs::rename("run/checkpoints/step-00000008", "run/aside");
  fs::remove_all("run/checkpoints");
  fs::create_directory("run/checkpoints");
  fs::rename("run/aside", "run/checkpoints/step-00000008.replaced-1");
  const Outcome outcome = go_on();
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("put 'step-00000008' back"));
}

}  // namespace
}  // namespace phalanx::tiny
