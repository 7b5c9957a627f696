// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx {

/// Where the processes of one host meet.
inline constexpr const char* kLoopbackAddress = "127.0.0.1";

/// This host's address on the way to `host`, a name or an address: "10.0.0.5". Empty for a name
/// that is unknown and for a host without a route. Sends nothing.
std::string local_address_towards(const std::string& host, uint16_t port);

/// Whether an address of this host, as above, is one that only this host reaches.
bool is_loopback(const std::string& address);

}  // namespace phalanx
