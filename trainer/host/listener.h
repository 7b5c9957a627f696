// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// A socket that listens for the processes of a run: nobody else can take its port before the
/// store has it.
struct Listener {
  Descriptor socket;
  uint16_t port = 0;
};

/// Listens at a name or an address of this host; port 0 takes a free one. Nothing, and errno, where
/// it cannot.
std::optional<Listener> listen_at(const std::string& host, uint16_t port);

/// The same at all addresses of this host: of IPv4 and IPv6, or of IPv4 where the kernel has no
/// other.
std::optional<Listener> listen_everywhere(uint16_t port);

/// Whether a name or an address is one of this host's, at which it can listen.
bool is_this_host(const std::string& host);

}  // namespace phalanx
