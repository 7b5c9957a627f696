// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/next_command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "trainer/base/program.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/node.h"
#include "trainer/ranks/environment/launch_lines.h"

namespace phalanx {
namespace {

TEST(NextCommand, NamesTheProgramAsItWasCalledAndQuotesForAShell) {
  const std::string program = config::shell_word(program_name());
  EXPECT_EQ(command_to_resume("runs/a/run_0"),
            program + " runs/a/run_0/config.yaml exp_dir=runs/a/run_0");
  EXPECT_EQ(command_to_resume("runs/a b/"),
            program + " 'runs/a b/config.yaml' 'exp_dir=\"runs/a b/\"'");
  EXPECT_EQ(command_to_evaluate("a b"), program + " evaluate 'a b'");
}

// A command that its config refuses is no offer.
TEST(NextCommand, AllowsAResumeThatTheConfigForbids) {
  for (const char* resume : {"auto", "never"}) {
    config::Node checkpoint = config::Node::map();
    checkpoint.set("resume", config::Node::string(resume));
    config::Node resolved = config::Node::map();
    resolved.set("checkpoint", std::move(checkpoint));
    EXPECT_EQ(command_to_resume("run", resolved),
              command_to_resume("run") +
                  (std::string(resume) == "never" ? " checkpoint.resume=auto" : ""));
  }
  EXPECT_EQ(command_to_resume("run", config::Node::map()), command_to_resume("run"));
}

// The program alone would go on with one rank of several.
TEST(NextCommand, IsTheLineOfTheLaunchOnEachOfItsNodes) {
  export_launch_lines({{.place = "", .words = {"srun", "-n", "2", "a b/trainer"}}});
  EXPECT_EQ(command_to_resume("run"),
            "srun -n 2 'a b/trainer' run/config.yaml exp_dir=run");
  export_launch_lines({{.place = "each node", .words = {"trainer", "launch"}}});
  EXPECT_EQ(command_to_resume("run"),
            "on each node: trainer launch run/config.yaml exp_dir=run");
  export_launch_lines({{.place = "node 0", .words = {"trainer", "launch", "--node-rank=0"}},
                       {.place = "node 1", .words = {"trainer", "launch", "--node-rank=1"}}});
  EXPECT_EQ(command_to_resume("run"),
            "on each node its line\n"
            "  node 0: trainer launch --node-rank=0 run/config.yaml exp_dir=run\n"
            "  node 1: trainer launch --node-rank=1 run/config.yaml exp_dir=run");
  ::unsetenv(kLaunchLinesVariable);
}

// Anybody may have set the variable.
TEST(NextCommand, LeavesAVariableThatHoldsNoLines) {
  const std::string alone = command_to_resume("run");
  for (const char* text : {"", "no", "{}", "[1]", "[[\"\", []]]", "[[\"\", [1]]]", "7"}) {
    ::setenv(kLaunchLinesVariable, text, 1);
    EXPECT_EQ(command_to_resume("run"), alone) << text;
  }
  ::unsetenv(kLaunchLinesVariable);
}

}  // namespace
}  // namespace phalanx
