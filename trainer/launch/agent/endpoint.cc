// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/endpoint.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/host/local_address.h"
#include "trainer/launch/agent/store_probe.h"

namespace phalanx {

using Server = AgentSettings::Server;

namespace {

// The node that listens there already.
bool is_first_node_of_this_host(const AgentSettings& settings) {
  constexpr std::chrono::milliseconds kPatience(3'000);
  const StorePlace place{.host = settings.host, .port = settings.port, .setting = "the endpoint"};
  return settings.max_nodes > 1 && is_this_host(settings.host) &&
         why_no_store_answers(place, kPatience).empty();
}

}  // namespace

std::optional<Listener> listen_as_server(const AgentSettings& settings) {
  if (settings.server == Server::elsewhere) return std::nullopt;
  const bool must_serve = settings.server == Server::here || settings.max_nodes == 1;
  if (!must_serve && !is_this_host(settings.host)) return std::nullopt;
  const std::string own = settings.max_nodes == 1 ? settings.host : std::string();
  const std::string& host = settings.local_address.empty() ? own : settings.local_address;
  auto listener = host.empty() ? listen_everywhere(settings.port) : listen_at(host, settings.port);
  if (listener) return listener;
  const int error = errno;
  if (error == EADDRINUSE && (!must_serve || is_first_node_of_this_host(settings))) {
    return std::nullopt;
  }
  throw UserError(fmt::format("cannot serve the store of the run at {}:{}: {}",
                              host.empty() ? settings.host : host, settings.port,
                              std::generic_category().message(error)));
}

std::string why_others_cannot_come(const AgentSettings& settings) {
  const bool is_loopback_endpoint = settings.host == "localhost" || is_loopback(settings.host);
  if (settings.max_nodes == 1 || !is_loopback_endpoint) return {};
  return fmt::format(
      "'{}' means each host itself, so no node of another host comes; name a host "
      "as the others know it",
      settings.host);
}

}  // namespace phalanx
