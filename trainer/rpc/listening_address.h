// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::rpc {

/// Where an agent listens, for a process group that listens at `address`; where that is empty it
/// goes by GLOO_SOCKET_IFNAME: then at the first address of the first of these interfaces, and
/// without any on loopback. Throws UserError for an interface that has no address.
std::string listening_address(const std::string& address);

}  // namespace phalanx::rpc
