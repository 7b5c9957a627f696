// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/early_end.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/run/run_folder.h"

namespace phalanx::tiny {
namespace {

const std::string kEarly = R"({"start": 1, "exit_code": 0, "reason": "loss is nan"})";

class EarlyEnd : public CommandTest {
 protected:
  std::string recorded(int starts, const std::string& ends) {
    std::string lines;
    for (int i = 0; i < starts; ++i) lines += "{}\n";
    write("run/starts.jsonl", lines);
    write("run/ends.jsonl", ends);
    return recorded_early_end("run");
  }
};

TEST_F(EarlyEnd, IsThatOfTheLastStartThatHasBegun) {
  EXPECT_EQ(recorded_early_end("nowhere"), "");
  EXPECT_EQ(recorded(1, ""), "");
  EXPECT_EQ(recorded(1, R"({"start": 1, "exit_code": 0})"), "");
  EXPECT_EQ(recorded(1, R"({"start": 1, "exit_code": 143, "reason": "node b joins"})"), "");
  EXPECT_EQ(recorded(1, R"({"start": 1, "exit_code": "0", "reason": "?"})"), "");
  EXPECT_EQ(recorded(1, kEarly), "loss is nan");
  EXPECT_EQ(recorded(2, kEarly + "\n{\"start\": 2, \"exit_code\": 2, \"began\": false}"),
            "loss is nan");
  EXPECT_EQ(recorded(2, kEarly), "") << "the second one was killed: it may have gone on";
  EXPECT_EQ(recorded(2, kEarly + "\n{\"start\": 2, \"exit_code\": 143, \"signal\": 15}"), "");
}

TEST_F(EarlyEnd, IsNoUnfinishedRun) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name=tiny", "task.fails_at=6"}).code, 1);
  EXPECT_TRUE(unfinished_run("tiny"));
  write("runs/tiny/run_0/ends.jsonl", kEarly + "\n");
  EXPECT_EQ(unfinished_run("tiny"), std::nullopt);
}

}  // namespace
}  // namespace phalanx::tiny
