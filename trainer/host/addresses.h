// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

#include <cstdint>
#include <memory>
#include <string>

namespace phalanx {

/// Those of a host, in the order in which they should be tried.
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Looks up a name or an address, for TCP; with AI_PASSIVE in `flags`, to listen there. Sets
/// `error` to getaddrinfo's; then there are none.
Addresses addresses_of(const std::string& host, uint16_t port, int flags, int& error);

/// The same; none for a name that is unknown.
Addresses addresses_of(const std::string& host, uint16_t port, int flags = 0);

}  // namespace phalanx
