// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/local_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "trainer/base/descriptor.h"
#include "trainer/host/addresses.h"

namespace phalanx {
namespace {

std::string text_of(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      ::getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

// To connect a datagram socket only looks up the route.
std::string source_address(const addrinfo& target) {
  const Descriptor socket(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return {};
  if (::connect(socket.number(), target.ai_addr, target.ai_addrlen) != 0) return {};
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  auto* address = reinterpret_cast<sockaddr*>(&own);
  return ::getsockname(socket.number(), address, &size) == 0 ? text_of(*address, size) : "";
}

}  // namespace

std::string local_address_towards(const std::string& host, uint16_t port) {
  const Addresses targets = addresses_of(host, port);
  for (const addrinfo* target = targets.get(); target != nullptr; target = target->ai_next) {
    std::string address = source_address(*target);
    if (!address.empty()) return address;
  }
  return {};
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

}  // namespace phalanx
