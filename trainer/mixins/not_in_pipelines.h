// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// Refuses what cannot be combined with stages in a config as the user gave it: other ways to
/// spread a model over ranks, and what goes with these alone. Throws ConfigError with all of it.
void refuse_what_pipelines_lack(const config::Node& tree);

}  // namespace phalanx
