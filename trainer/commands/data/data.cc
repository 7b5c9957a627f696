// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/command.h"

namespace phalanx {

Command data_inspect_command();

Command data_command() {
  return {
      .name = "data",
      .summary = "look at data sets",
      .help = "See also `tokenize`, which makes them.",
      .actions = {data_inspect_command()},
  };
}

}  // namespace phalanx
