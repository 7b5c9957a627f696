// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "trainer/rpc/agent.h"

namespace phalanx::parameter_server {

/// What a server waits for.
struct Awaited {
  std::string_view what;  ///< "gradients".
  /// Waits for it; false: not within this time.
  std::function<bool(std::chrono::milliseconds)> wait;
  /// Ranks that it has not come from.
  std::function<std::vector<int64_t>()> missing;
};

/// Waits until it has come from all ranks. Throws WorkerLost: within seconds for a rank that is
/// gone, and at the agent's timeout for one that is silent, with their names.
void await_ranks(const rpc::Agent& agent, const Awaited& awaited);

}  // namespace phalanx::parameter_server
