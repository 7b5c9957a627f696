// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/endpoint.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "trainer/base/user_error.h"

namespace phalanx {

using Server = AgentSettings::Server;

std::optional<Listener> listen_as_server(const AgentSettings& settings) {
  if (settings.server == Server::elsewhere) return std::nullopt;
  const bool must_serve = settings.server == Server::here || settings.max_nodes == 1;
  if (!must_serve && !is_this_host(settings.host)) return std::nullopt;
  const std::string own = settings.max_nodes == 1 ? settings.host : std::string();
  const std::string& host = settings.local_address.empty() ? own : settings.local_address;
  auto listener = host.empty() ? listen_everywhere(settings.port) : listen_at(host, settings.port);
  if (listener) return listener;
  if (!must_serve && errno == EADDRINUSE) return std::nullopt;  // another agent of this host
  throw UserError(fmt::format("cannot serve the store of the run at {}:{}: {}",
                              host.empty() ? settings.host : host, settings.port,
                              std::generic_category().message(errno)));
}

}  // namespace phalanx
