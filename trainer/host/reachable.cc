// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/reachable.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "trainer/base/descriptor.h"

namespace phalanx {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kAnswer{1'000};
constexpr Milliseconds kFirstPause{50};
constexpr Milliseconds kLongestPause{1'000};

socklen_t size_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

const sockaddr* generic(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

int error_of(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// A port of this host that nobody listens at may be the one that the system gives to the socket:
// then it is connected with itself.
bool is_own_end(int socket) {
  sockaddr_storage own{};
  sockaddr_storage other{};
  socklen_t own_size = sizeof(own);
  socklen_t other_size = sizeof(other);
  const bool are_known =
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &other_size) == 0;
  return are_known && own_size == other_size && std::memcmp(&own, &other, own_size) == 0;
}

int try_once(const sockaddr_storage& address) {
  const Descriptor socket(
      ::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  if (::connect(socket.number(), generic(address), size_of(address)) == 0) {
    return is_own_end(socket.number()) ? ECONNREFUSED : 0;
  }
  if (errno != EINPROGRESS) return errno;
  pollfd answer{.fd = socket.number(), .events = POLLOUT, .revents = 0};
  const bool is_answered = ::poll(&answer, 1, static_cast<int>(kAnswer.count())) == 1;
  if (!is_answered) return ETIMEDOUT;
  const int error = error_of(socket.number());
  return error == 0 && is_own_end(socket.number()) ? ECONNREFUSED : error;
}

// EACCES and EINVAL are what the routes `prohibit` and `blackhole` say.
bool may_pass(int error) {
  constexpr std::array kErrors{EHOSTUNREACH, ENETUNREACH, ENETDOWN,     EHOSTDOWN,
                               EACCES,       EINVAL,      EADDRNOTAVAIL};
  return std::ranges::find(kErrors, error) != kErrors.end();
}

}  // namespace

std::string describe(const sockaddr_storage& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int error = ::getnameinfo(generic(address), size_of(address), host.data(), host.size(),
                                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return "an unknown address";
  return std::string(host.data()) + " port " + port.data();
}

std::error_code try_to_connect(const sockaddr_storage& address) {
  return {try_once(address), std::generic_category()};
}

void wait_until_reachable(const sockaddr_storage& address, Milliseconds timeout,
                          const std::function<void(const std::error_code&)>& on_wait) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (Milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const int error = try_once(address);
    if (!may_pass(error)) return;
    if (pause == kFirstPause) on_wait({error, std::generic_category()});
    if (std::chrono::steady_clock::now() + pause > end) {
      throw std::system_error(error, std::generic_category(), describe(address));
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace phalanx
