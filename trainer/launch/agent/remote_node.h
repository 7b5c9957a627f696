// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A node that this one starts on another host.
struct RemoteNode {
  std::string host;                  ///< For messages.
  std::vector<std::string> command;  ///< "ssh", "node1", what the shell there is told.
};

}  // namespace phalanx
