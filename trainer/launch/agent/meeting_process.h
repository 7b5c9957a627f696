// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "trainer/launch/agent/agent_settings.h"
#include "trainer/launch/agent/endpoint.h"
#include "trainer/launch/agent/joining.h"

namespace phalanx {

/// The life of the process that speaks with other agents: `listener` is there where it serves the
/// store, `agent` leads to the agent. Ends when the agent has closed it.
[[noreturn]] void run_meeting(const AgentSettings& settings, const Launched& launched,
                              std::optional<Listener> listener, Descriptor agent);

}  // namespace phalanx
