// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command.h"

namespace phalanx {

Command launch_slurm_command();

Command launch_command() {
  return {
      .name = "launch",
      .summary = "start a run elsewhere",
      .help =
          "Hands a run to what starts its ranks on other hosts. On this host `trainer train` "
          "starts them (launcher.processes).",
      .actions = {launch_slurm_command()},
  };
}

}  // namespace phalanx
