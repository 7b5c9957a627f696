// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace c10d {
class Store;
}

namespace phalanx {

/// The address of a key-value store.
struct StorePlace {
  std::string host;  ///< A name or an address.
  uint16_t port = 0;
  std::string setting;  ///< Where the user sets the host, for messages: "MASTER_ADDR".
};

/// Who serves a store.
struct StoreServer {
  bool is_here = false;
  std::optional<int> listen_fd = {};  ///< An open socket that listens at the port.
};

/// c10d would try an unknown name until its timeout. Throws UserError for one.
void require_known_host(const StorePlace& place);

/// Connects once: why nobody can be met at the place; empty where something listens there.
std::string why_nobody_listens(const StorePlace& place);

/// This host's address on the way to the store. A host that starts may have no network yet; without
/// a route c10d would print a stack for each of its attempts. Throws UserError after `timeout`.
std::string wait_for_route(const StorePlace& place, std::chrono::milliseconds timeout);

/// c10d's own store at the place, which others than Phalanx can use, too. Tries as long as
/// `timeout` until it is served. Throws std::runtime_error where no store answers, and to who
/// serves it what c10d says of the port; UserError where the place is not on this host, which is to
/// serve it.
c10::intrusive_ptr<c10d::Store> open_tcp_store(const StorePlace& place, const StoreServer& server,
                                               std::chrono::milliseconds timeout);

/// Hides c10d's warnings, unless TORCH_CPP_LOG_LEVEL is set: they tell in the middle of the screen
/// what an error's message will say.
void show_only_errors_of_c10d();

}  // namespace phalanx
