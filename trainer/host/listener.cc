// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "trainer/host/addresses.h"

namespace phalanx {
namespace {

// All processes may knock before the store answers.
constexpr int kBacklog = 4096;

uint16_t& port_in(sockaddr& address) {
  return address.sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

void set_option(const Descriptor& socket, int level, int option, int value) {
  ::setsockopt(socket.number(), level, option, &value, sizeof(value));
}

Descriptor bound_socket(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  Descriptor bound = take_descriptor(socket, "make a socket");
  // A port that was asked for may have connections of a run that has just ended.
  if (port_in(*address.ai_addr) != 0) set_option(bound, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) set_option(bound, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(bound.number(), address.ai_addr, address.ai_addrlen) != 0) bound.close();
  return bound;
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr&>(storage);
  socklen_t size = sizeof(storage);
  return ::getsockname(socket.number(), &address, &size) == 0 ? ntohs(port_in(address)) : 0;
}

}  // namespace

std::optional<Listener> listen_at(const std::string& host, uint16_t port) {
  const Addresses addresses = addresses_of(host, port, AI_PASSIVE);
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

std::optional<Listener> listen_everywhere(uint16_t port) {
  auto listener = listen_at("::", port);
  if (listener || errno == EADDRINUSE) return listener;
  return listen_at("0.0.0.0", port);
}

bool is_this_host(const std::string& host) {
  const Addresses addresses = addresses_of(host, 0, AI_PASSIVE);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (bound_socket(*each).is_open()) return true;
  }
  return false;
}

}  // namespace phalanx
