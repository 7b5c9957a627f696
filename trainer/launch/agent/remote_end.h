// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// How the command of a remote node ended, before it was asked to.
struct RemoteEnd {
  int exit_code = 0;    ///< kSignalBase + the signal that killed it.
  std::string message;  ///< What that means, with the last lines that came from there.
};

/// For a packet.
std::string to_packet(const RemoteEnd& end);
RemoteEnd remote_end_in(const std::string& packet);

}  // namespace phalanx
