// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/cli/command.h"

namespace phalanx {

/// The flag --average of commands that use the model of a run.
inline Flag average_flag() {
  return {"--average", "take the average of the weights that the run keeps (averages.method)"};
}

}  // namespace phalanx
