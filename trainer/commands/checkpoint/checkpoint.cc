// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command.h"

// Every action, in the order of help. `list` is `Command checkpoint_list_command()` in
// checkpoint_list.cc.
#define PHALANX_CHECKPOINT_ACTIONS(action)                                               \
  action(list) action(inspect) action(verify) action(diff) action(prune) action(average) \
      action(export) action(import)

namespace phalanx {

#define DECLARE(name) Command checkpoint_##name##_command();
PHALANX_CHECKPOINT_ACTIONS(DECLARE)
#undef DECLARE

Command checkpoint_command() {
#define MAKE(name) checkpoint_##name##_command(),
  return {
      .name = "checkpoint",
      .summary = "look at checkpoints, take them elsewhere",
      .help =
          "FOLDER is a run's, its checkpoints folder, or one checkpoint. RUN@best is the run's "
          "best "
          "checkpoint by checkpoint.keep_best (without it that of the lowest loss), RUN@200 the "
          "one "
          "of step 200.",
      .actions = {PHALANX_CHECKPOINT_ACTIONS(MAKE)},
  };
#undef MAKE
}

}  // namespace phalanx
