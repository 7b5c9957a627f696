// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/agent_settings.h"
#include "trainer/launch/agent/joining.h"
#include "trainer/launch/launcher.h"

namespace phalanx {

/// torchrun's agent (torch/distributed/elastic/agent/server): starts the ranks of this node, meets
/// the agents of other nodes, and starts all ranks again after a failure, with a back-off. A signal
/// that ends a run is passed on, and ends it. Ranks die with the agent, however it dies; of what a
/// program has started itself, only what is in its process group is sent signals.
class NodeAgent : public Launcher {
 public:
  explicit NodeAgent(AgentSettings settings);

  /// It gives places itself, whatever variables say.
  std::optional<Environment> environment() const override { return std::nullopt; }
  std::optional<int64_t> processes() const override;
  void when_attempt_fails(const std::function<void(const RankOutcome&)>& react) override;

  /// What to ask when nodes come, before a run is launched.
  void ask_before_joining(Launched launched);

  /// Runs `rank_main` in every rank of this node. Throws UserError where the agents cannot meet,
  /// and where the others go on without this node, which does not fit.
  RankOutcome launch(const RankMain& rank_main) override;
  /// The same, of ranks that become a program: words[0] is looked for in PATH. Exit code and
  /// message are those of the rank that failed first, 128 + the signal where one has killed it.
  RankOutcome launch_program(const std::vector<std::string>& words);

 private:
  AgentSettings settings_;
  Launched launched_ = launched_program({"-"}, /*is_elastic=*/false);
  std::function<void(const RankOutcome&)> react_;
};

}  // namespace phalanx
