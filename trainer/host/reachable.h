// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <string>
#include <system_error>

namespace phalanx {

/// "10.0.0.5 port 41233".
std::string describe(const sockaddr_storage& address);

/// Connects to a TCP address once: no error where something listens there. ETIMEDOUT: nobody has
/// answered within a second.
std::error_code try_to_connect(const sockaddr_storage& address);

/// Connects to a TCP address once, and again while the network says at once that there is no way to
/// it, as while a node comes up. A refusal is an answer of its host, and no answer within a second
/// is left to those who connect next. Calls `on_wait`, once, with what the network says before it
/// waits. Throws std::system_error with the network's last word after `timeout`.
void wait_until_reachable(const sockaddr_storage& address, std::chrono::milliseconds timeout,
                          const std::function<void(const std::error_code&)>& on_wait);

}  // namespace phalanx
