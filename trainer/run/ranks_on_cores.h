// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// The processes of the ranks that may run on exactly the cores of this one, itself among them.
/// Those of another PID namespace are left out: nothing can be asked about them. All ranks call it,
/// once each has its cores.
std::vector<pid_t> ranks_on_cores(const Ranks& ranks);

}  // namespace phalanx
