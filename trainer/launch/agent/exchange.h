// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trainer/launch/agent/agent_settings.h"
#include "trainer/launch/agent/coordinator.h"
#include "trainer/launch/agent/joining.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {

/// What an agent writes into the store of all agents, and reads there. Calls of it may never come
/// back, where the store's host is gone.
class Exchange {
 public:
  /// `serves`: this process serves the store, and decides for all. Throws UserError for the store
  /// of another launch.
  Exchange(const AgentSettings& settings, const Launched& launched,
           std::unique_ptr<KeyValueStore> store, bool serves);

  int64_t number() const { return number_; }
  const LaunchFacts& facts() const { return facts_; }

  /// Writes the agent's status and returns the order, empty before the first one.
  std::string swap(const std::string& status);

  /// For the process that serves the store.
  bool is_alone() const;

 private:
  std::string decide();

  std::unique_ptr<KeyValueStore> store_;
  LaunchFacts facts_;
  std::optional<Coordinator> coordinator_;
  Agents agents_;
  std::string order_;
  int64_t number_ = -1;
};

/// The name of the launch whose agents have this store; nothing for another store. Waits a moment.
std::optional<std::string> job_in(KeyValueStore& store);

}  // namespace phalanx
