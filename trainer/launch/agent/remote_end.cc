// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/remote_end.h"

namespace phalanx {

std::string to_packet(const RemoteEnd& end) {
  return std::to_string(end.exit_code) + " " + end.message;
}

RemoteEnd remote_end_in(const std::string& packet) {
  const size_t blank = packet.find(' ');
  return {.exit_code = std::stoi(packet.substr(0, blank)), .message = packet.substr(blank + 1)};
}

}  // namespace phalanx
