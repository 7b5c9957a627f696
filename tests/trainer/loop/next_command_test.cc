// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/next_command.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "trainer/base/program.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/node.h"

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

}  // namespace
}  // namespace phalanx
