// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "trainer/base/descriptor.h"
#include "trainer/launch/agent/remote_node.h"

namespace phalanx {

/// The process that starts nodes on other hosts, shows what they print, and tells `agent`, in
/// packets, of those that end (RemoteEnd). When the agent closes its side, or dies, it closes the
/// commands' standard inputs, and leaves once they have ended; after `patience` it kills them.
[[noreturn]] void run_remote_nodes(const std::vector<RemoteNode>& nodes,
                                   std::chrono::milliseconds patience, Descriptor agent);

}  // namespace phalanx
