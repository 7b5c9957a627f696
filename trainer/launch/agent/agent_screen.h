// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/launch/agent/agent_environment.h"
#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/agent_settings.h"

namespace phalanx {

/// What an agent tells on its screen, besides what its ranks print.
class AgentScreen {
 public:
  /// `settings` must outlive it.
  explicit AgentScreen(const AgentSettings& settings) : settings_(settings) {}

  /// Where the first node is not met yet; `why`, if anybody has said it. Each reason once.
  void waits_for_first_node(const std::string& why);
  /// What a node without ranks waits for, and why it takes so long, if anybody has said it. Once,
  /// and again with another reason.
  void waits(const Order& order, AgentStatus::State state, const std::string& why);
  /// Ranks run: the next waiting is told again.
  void runs() { told_waiting_.reset(); }

  /// What has happened to nodes since the last call, of all or of this one: who joins, leaves, is
  /// refused. Of the first order nothing: it was before this node has come.
  void tell_news(const Order& order);
  /// The ranks have failed, and start again.
  void starts_again(const Order& order) const;
  /// LOGLEVEL=INFO: what starts here.
  void starts(const NodePlace& place) const;

 private:
  std::string endpoint() const;
  void tell_waiting(const std::string& what, const std::string& why);

  const AgentSettings& settings_;
  std::optional<std::string> told_waiting_;
  std::optional<int64_t> news_told_;
};

}  // namespace phalanx
