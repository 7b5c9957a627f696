// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/next_command.h"

#include <gtest/gtest.h>

#include "trainer/base/program.h"
#include "trainer/config/syntax/argument.h"

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

}  // namespace
}  // namespace phalanx
