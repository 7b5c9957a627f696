// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "trainer/host/addresses.h"

namespace phalanx {
namespace {

// Whether something listens at an address of this host.
bool answers(const std::string& host, uint16_t port) {
  const Addresses found = addresses_of(host, port);
  if (!found) return false;
  const Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0;
}

TEST(Listener, ListensAtOneAddressAlone) {
  const auto listener = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  EXPECT_TRUE(answers("127.0.0.1", listener->port));
  EXPECT_FALSE(answers("127.0.0.2", listener->port));
}

TEST(Listener, ListensEverywhere) {
  const auto listener = listen_everywhere(0);
  ASSERT_TRUE(listener);
  EXPECT_TRUE(answers("127.0.0.1", listener->port));
  EXPECT_TRUE(answers("127.0.0.2", listener->port));
}

TEST(Listener, SaysThatAPortIsTaken) {
  const auto first = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(listen_at("127.0.0.1", first->port));
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST(Listener, TakesAPortOfARunThatHasJustEnded) {
  const uint16_t port = listen_at("127.0.0.1", 0).value().port;
  {
    const auto listener = listen_at("127.0.0.1", port);
    ASSERT_TRUE(listener);
    const Addresses found = addresses_of("127.0.0.1", port);
    const Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.number(), found->ai_addr, found->ai_addrlen), 0);
    const Descriptor server(::accept(listener->socket.number(), nullptr, nullptr));
    ASSERT_TRUE(server.is_open());
    ::shutdown(server.number(), SHUT_WR);  // The server's side closes first, and lingers.
  }
  EXPECT_TRUE(listen_at("127.0.0.1", port));
}

TEST(Listener, IsOfThisHostAlone) {
  EXPECT_TRUE(is_this_host("127.0.0.1"));
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_FALSE(is_this_host("192.0.2.1"));  // RFC 5737: of no host
  EXPECT_FALSE(is_this_host("no-such-host.invalid"));
  EXPECT_FALSE(listen_at("192.0.2.1", 0));
}

// What is printed must not get into a socket.
TEST(Listener, LeavesTheStandardStreamsAlone) {
  const Descriptor input(::dup(STDIN_FILENO));
  ::close(STDIN_FILENO);
  const auto listener = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  EXPECT_GT(listener->socket.number(), STDERR_FILENO);
  ::dup2(input.number(), STDIN_FILENO);
}

}  // namespace
}  // namespace phalanx
