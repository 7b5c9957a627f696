// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/io/file.h"
#include "trainer/loop/next_command.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class Ends : public CommandTest {
 protected:
  /// A line of ends.jsonl without its time.
  static Json end_of(const fs::path& exp_dir, size_t number) {
    const auto lines = lines_of(exp_dir / "ends.jsonl");
    if (lines.size() <= number) return {};
    Json end = Json::parse(lines[number]);
    EXPECT_THAT(end["time"].get<std::string>(),
                MatchesRegex("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]{8}Z"));
    end.erase("time");
    return end;
  }
};

TEST_F(Ends, OfAFinishedRunNamesItsLastCheckpoint) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0);
  EXPECT_EQ(end_of("run", 0), Json::parse(R"({"start": 1, "exit_code": 0, "step": 8, "saved": true,
                                              "checkpoint": "step-00000008"})"));
}

TEST_F(Ends, OfAFailureHasItsTextAndTheCommandIsPrinted) {
  const Outcome failed = run({"tiny.yaml", "exp_dir=run", "task.fails_at=6"});
  EXPECT_EQ(failed.code, 1);
  const Json end = end_of("run", 0);
  EXPECT_EQ(end["exit_code"], 1);
  EXPECT_EQ(end["step"], 5);
  EXPECT_THAT(end["error"].get<std::string>(), HasSubstr("step 6: "));
  EXPECT_EQ(end["saved"], true);
  EXPECT_EQ(end["checkpoint"], "step-00000004");
  EXPECT_THAT(
      failed.errors,
      AllOf(HasSubstr("error: step 6: "),
            EndsWith("\n5 steps were finished; the newest checkpoint is step-00000004; mend "
                     "the cause first\n"
                     "next: " +
                     command_to_resume("run") + "\n")));
}

TEST_F(Ends, BeforeAnyCheckpointSaySo) {
  const Outcome failed = run({"tiny.yaml", "exp_dir=run", "task.fails_at=1"});
  EXPECT_THAT(failed.errors, HasSubstr("0 steps were finished; no checkpoint was saved"));
  EXPECT_FALSE(end_of("run", 0).contains("checkpoint"));
  EXPECT_FALSE(end_of("run", 0).contains("began")) << "it had none to load";
  EXPECT_EQ(end_of("run", 0)["saved"], false);
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=second", "task.fails_at=2"}).errors,
              HasSubstr("\n1 step was finished; no checkpoint was saved"));
}

TEST_F(Ends, ACheckpointOfAnEarlierStartIsNotSavedByThisOne) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.max_steps=4"}).code, 0);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "task.fails_at=6"}).code, 1);
  const Json end = end_of("run", 1);
  EXPECT_EQ(end["start"], 2);
  EXPECT_EQ(end["step"], 5);
  EXPECT_EQ(end["saved"], false);
  EXPECT_EQ(end["checkpoint"], "step-00000004");
}

TEST_F(Ends, OfAStopNamesTheSignal) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "task.raises_at=3"}).code, 128 + SIGTERM);
  EXPECT_EQ(end_of("run", 0),
            Json::parse(R"({"start": 1, "exit_code": 143, "signal": 15, "step": 3, "saved": true,
                            "checkpoint": "step-00000003"})"));
}

TEST_F(Ends, OfAMistakeThatAResumeFindsOfferNoCommand) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.max_steps=4"}).code, 0);
  const Outcome refused =
      run({"tiny.yaml", "exp_dir=run", "training.max_steps=6", "++checkpoint.resume=never"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(end_of("run", 1)["exit_code"], 2);
  EXPECT_EQ(end_of("run", 1)["began"], false);
  EXPECT_FALSE(end_of("run", 0).contains("began"));
  EXPECT_THAT(refused.errors, Not(HasSubstr("next: ")));
}

// The command that a message offers must not be refused by the config that it repeats.
TEST_F(Ends, OfferACommandThatMayResume) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name=a", "checkpoint.resume=never", "task.raises_at=3"}).code,
            143);
  const std::string kept = "runs/a/run_0";
  const auto note = unfinished_run("a");
  ASSERT_TRUE(note);
  EXPECT_THAT(*note, HasSubstr(" exp_dir=" + kept + " checkpoint.resume=auto continues it"));
  EXPECT_THAT(read_text(kept + "/config.yaml"),
              HasSubstr("exp_dir=" + kept + " checkpoint.resume=auto\n"));
  EXPECT_EQ(run({kept + "/config.yaml", "exp_dir=" + kept}).code, 2);
  EXPECT_EQ(run({kept + "/config.yaml", "exp_dir=" + kept, "checkpoint.resume=auto"}).code, 0);
  const Outcome failed =
      run({"tiny.yaml", "exp_name=b", "checkpoint.resume=never", "task.fails_at=6"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.errors, EndsWith(" exp_dir=runs/b/run_0 checkpoint.resume=auto\n"));
}

TEST_F(Ends, AStartWithoutOneIsToldByTheNext) {
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=run", "training.max_steps=2"}).output,
              Not(HasSubstr("no record of its end")));
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=run", "training.max_steps=3"}).output,
              Not(HasSubstr("no record of its end")));
  write("run/ends.jsonl", lines_of("run/ends.jsonl").front() + "\n");  // as after kill -9
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=run", "training.max_steps=4"}).output,
              HasSubstr(" left no record of its end (killed?)\n"));
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=run"}).output, Not(HasSubstr("no record of its end")));
}

TEST_F(Ends, ATornLineIsNoEnd) {
  write("run/starts.jsonl", "{\"time\": \"now\", \"pid\": 7, \"host\": \"h\"}\n");
  write("run/ends.jsonl", "{\"start\": 1");
  EXPECT_EQ(last_start_without_end("run"),
            "the last start of now, process 7 on h, left no record of its end (killed?)");
  append_end("run", R"({"start": 1})");
  EXPECT_EQ(last_start_without_end("run"), std::nullopt);
  EXPECT_EQ(last_start_without_end("not_there"), std::nullopt);
  append_line("run/starts.jsonl", "{\"ti");
  EXPECT_EQ(last_start_without_end("run"), "the last start left no record of its end (killed?)");
}

TEST_F(Ends, ARunThatIsRefusedBeforeItTakesItsFolderHasNone) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "task.samples=0"}).code, 2);
  EXPECT_THAT(lines_of("run/ends.jsonl"), IsEmpty());
}

}  // namespace
}  // namespace phalanx::tiny
