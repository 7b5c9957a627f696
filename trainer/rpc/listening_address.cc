// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/listening_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "trainer/base/user_error.h"
#include "trainer/host/local_address.h"

namespace phalanx::rpc {
namespace {

// Empty for an interface that is not there, or has none.
std::string address_of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || name != each->ifa_name) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(each->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      return text.data();
    }
  }
  return {};
}

}  // namespace

std::string listening_address(const std::string& address) {
  if (!address.empty()) return address;
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  if (names == nullptr) return kLoopbackAddress;
  const std::string all = names;
  const std::string first = all.substr(0, all.find(','));
  std::string found = address_of_interface(first);
  if (!found.empty()) return found;
  throw UserError(fmt::format(
      "GLOO_SOCKET_IFNAME: the network interface '{}' is not there or has no address (`ip address` "
      "lists them)",
      first));
}

}  // namespace phalanx::rpc
