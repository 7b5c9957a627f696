// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/spawn.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "trainer/launch/rank_processes.h"
#include "trainer/ranks/failures/communication_error.h"

namespace phalanx {
namespace {

std::string text_of(const RankOutcome& outcome) {
  if (!outcome.message.empty()) return outcome.message;
  return fmt::format("the ranks ended with exit code {}", outcome.exit_code);
}

}  // namespace

SpawnError::SpawnError(RankOutcome outcome)
    : std::runtime_error(text_of(outcome)), outcome_(std::move(outcome)) {}

void spawn(int64_t processes, const std::function<void(const Environment&)>& function) {
  if (processes < 1 || processes > kMostRanksOfNode) {
    throw std::invalid_argument(
        fmt::format("spawn starts 1 to {} ranks, not {}", kMostRanksOfNode, processes));
  }
  RankOutcome outcome = RankProcesses(processes).run([&](const Environment& environment) {
    try {
      function(environment);
    } catch (const CommunicationError& error) {
      return RankOutcome{.exit_code = kFailure, .message = error.what(), .caused_by_peer = true};
    }
    return RankOutcome{};
  });
  if (outcome.exit_code != 0) throw SpawnError(std::move(outcome));
}

}  // namespace phalanx
