// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/endpoint.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using Server = AgentSettings::Server;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// All agents and ranks may knock before the store answers.
constexpr int kBacklog = 4096;

// Empty for a name that is unknown.
Addresses addresses_of(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

Descriptor bound_socket(const addrinfo& address) {
  Descriptor bound(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!bound.is_open()) return bound;
  const int on = 1;
  const int off = 0;
  ::setsockopt(bound.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) {
    ::setsockopt(bound.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (::bind(bound.number(), address.ai_addr, address.ai_addrlen) != 0) bound.close();
  return bound;
}

// A host that is this one can be bound to.
bool is_this_host(const std::string& host) {
  const Addresses addresses = addresses_of(host, 0);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (bound_socket(*each).is_open()) return true;
  }
  return false;
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Nothing, and errno, where it cannot.
std::optional<Listener> listen_at(const std::string& host, uint16_t port) {
  const Addresses addresses = addresses_of(host, port);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Descriptor socket = bound_socket(*each);
    if (socket.is_open() && ::listen(socket.number(), kBacklog) == 0) {
      const uint16_t chosen = port_of(socket);
      return Listener{std::move(socket), chosen};
    }
    if (error != EADDRINUSE) error = errno;
  }
  errno = error;
  return std::nullopt;
}

// At all addresses of this host: of IPv4 and IPv6, or of IPv4 where the kernel has no other.
std::optional<Listener> listen_everywhere(uint16_t port) {
  auto listener = listen_at("::", port);
  if (listener || errno == EADDRINUSE) return listener;
  return listen_at("0.0.0.0", port);
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
  if (!must_serve && errno == EADDRINUSE) return std::nullopt;  // another agent of this host
  throw UserError(fmt::format("cannot serve the store of the run at {}:{}: {}",
                              host.empty() ? settings.host : host, settings.port,
                              std::generic_category().message(errno)));
}

}  // namespace phalanx
