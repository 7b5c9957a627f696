// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/loopback_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace phalanx {
namespace {

// All ranks may knock before rank 0 answers.
constexpr int kBacklog = 4096;

}  // namespace

LoopbackListener listen_on_loopback() {
  LoopbackListener listener;
  listener.socket =
      take_descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "make a socket");
  const int socket = listener.socket.number();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, kLoopbackAddress, &address.sin_addr);
  auto* const any_address = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (::bind(socket, any_address, size) != 0 || ::listen(socket, kBacklog) != 0 ||
      ::getsockname(socket, any_address, &size) != 0) {
    throw_system_error("listen on 127.0.0.1");
  }
  listener.port = ntohs(address.sin_port);
  return listener;
}

}  // namespace phalanx
