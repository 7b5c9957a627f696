// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

/// The section `logging`: how often, and where to.
struct LoggingConfig {
  int64_t every_n_steps = 10;
  std::vector<config::Chosen> sinks = {"progress", "jsonl", "tensorboard"};

  static void describe(config::Schema<LoggingConfig>& s);
};

}  // namespace phalanx
