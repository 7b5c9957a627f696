// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/command_table.h"

// Every command, in the order of help. `train` is `Command train_command()` in train.cc.
#define PHALANX_COMMANDS(command)                                                        \
  command(train) command(launch) command(evaluate) command(predict) command(generate)    \
      command(tokenize) command(data) command(config) command(checkpoint) command(store) \
          command(list) command(new) command(completion) command(help)

namespace phalanx {

#define DECLARE(name) Command name##_command();
PHALANX_COMMANDS(DECLARE)
#undef DECLARE

NamedCommand program() {
#define MAKE(name) name##_command(),
  static const Command command{
      .name = "trainer",
      .help =
          "Trains the models that config files describe; shows configs, runs and "
          "checkpoints. The default command is train.",
      .examples = {"configs/quickstart.yaml", "my.yaml optimizer.lr=1e-3", "train --help",
                   "config print my.yaml"},
      .flags = {{"--version", "versions of the program and of what it was built with"}},
      .actions = {PHALANX_COMMANDS(MAKE)},
  };
#undef MAKE
  return {.command = &command, .name = "trainer"};
}

}  // namespace phalanx
