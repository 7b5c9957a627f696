// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/reachable.h"

#include <gtest/gtest.h>
#include <netdb.h>

#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "trainer/host/addresses.h"
#include "trainer/host/listener.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

sockaddr_storage address_at(const std::string& host, uint16_t port) {
  const Addresses found = addresses_of(host, port);
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  return address;
}

void never(const std::error_code& why) { FAIL() << why.message(); }

TEST(Reachable, IsASocketThatListens) {
  const auto listener = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const sockaddr_storage address = address_at("127.0.0.1", listener->port);
  EXPECT_EQ(describe(address), "127.0.0.1 port " + std::to_string(listener->port));
  wait_until_reachable(address, milliseconds(0), never);
}

TEST(Reachable, IsAHostThatRefuses) {
  const uint16_t port = listen_at("127.0.0.1", 0)->port;  // closed again
  wait_until_reachable(address_at("127.0.0.1", port), milliseconds(0), never);
}

TEST(Reachable, NamesTheAddressThatIsNot) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::error_code> told;
  try {
    // The kernel refuses to connect a stream to a multicast address.
    wait_until_reachable(address_at("224.0.0.1", 4), milliseconds(200),
                         [&](const std::error_code& why) { told.push_back(why); });
    FAIL() << "nothing was thrown";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::network_unreachable);
    EXPECT_EQ(std::string(error.what()), "224.0.0.1 port 4: Network is unreachable");
  }
  EXPECT_EQ(told, std::vector{std::make_error_code(std::errc::network_unreachable)});
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(150));
}

}  // namespace
}  // namespace phalanx
