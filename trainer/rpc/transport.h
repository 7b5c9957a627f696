// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::rpc {

/// The name under which LibTorch's agents find TCP at an address of ours.
inline constexpr const char* kTransport = "phalanx";

/// Where the next agent of this process listens: LibTorch's registry gives what it creates no
/// arguments.
void listen_at(std::string address);

}  // namespace phalanx::rpc
