// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/addresses.h"

#include <sys/socket.h>

namespace phalanx {

Addresses addresses_of(const std::string& host, uint16_t port, int flags, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

Addresses addresses_of(const std::string& host, uint16_t port, int flags) {
  int error = 0;
  return addresses_of(host, port, flags, error);
}

}  // namespace phalanx
