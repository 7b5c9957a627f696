// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>

#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

/// For checks inside of ranks, where GoogleTest's do not reach the test: throws.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("does not hold: " + what);
}

/// What GoogleTest shows of an outcome.
inline void PrintTo(const RankOutcome& outcome, std::ostream* stream) {
  *stream << "exit code " << outcome.exit_code << ", \"" << outcome.message << '"';
}

/// Runs `body` in so many real processes that have joined each other; the launcher's word on how
/// they ended, with an empty message when all went well. `ranks_per_host`: they are told that they
/// are on hosts of so many each, one after the other.
inline RankOutcome in_ranks(int64_t processes, const std::function<void(World&)>& body,
                            const JoinOptions& options = {},
                            std::optional<int64_t> ranks_per_host = {}) {
  return LocalLauncher({.processes = processes}).launch([&](Environment environment) {
    if (ranks_per_host) {
      environment.local_rank = environment.rank % *ranks_per_host;
      environment.local_world_size = *ranks_per_host;
    }
    World world = init_from_env(environment, options);
    try {
      body(world);
      world.close();
    } catch (const CommunicationError& error) {
      return RankOutcome{.exit_code = 1, .message = error.what(), .caused_by_peer = true};
    } catch (const std::exception& error) {
      return RankOutcome{.exit_code = 1, .message = error_text(error)};
    }
    return RankOutcome{};
  });
}

}  // namespace phalanx
