// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "trainer/host/listener.h"
#include "trainer/launch/agent/agent_settings.h"

namespace phalanx {

/// Listens at the endpoint, where this agent is the one that serves the store there; nullopt where
/// another one does: on another host, or on this one before it. For one node it listens at the
/// endpoint's address alone, which is 127.0.0.1 by default; for several at all addresses, since a
/// host's own name may mean loopback, unless settings.local_address names one. Where another node
/// of this host is the first one as well, this one is to meet it: it will refuse one of both. For a
/// process of one thread. Throws UserError.
std::optional<Listener> listen_as_server(const AgentSettings& settings);

/// Says that nodes of other hosts never come, for a launch of several nodes whose endpoint means
/// each host itself. Empty for any other.
std::string why_others_cannot_come(const AgentSettings& settings);

}  // namespace phalanx
