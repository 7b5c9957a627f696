// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/stores/tcp_store.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/base/descriptor.h"
#include "trainer/host/listener.h"

namespace phalanx {
namespace {

// Why no store is found, or served, at this port.
std::string refusal(uint16_t port, const std::string& host = "127.0.0.1",
                    const StoreServer& server = {}) {
  try {
    open_tcp_store({.host = host, .port = port, .setting = "MASTER_ADDR"}, server,
                   std::chrono::milliseconds(100));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "a store";
}

TEST(TcpStore, ListenersThatAreNoStoreAreTold) {
  const auto listener = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  EXPECT_EQ(refusal(listener->port),
            "something listens there that does not answer as a store does");
}

TEST(TcpStore, ListenersThatAreGoneAreNotTold) {
  auto listener = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const uint16_t port = listener->port;
  // It keeps its one connection, and c10d waits for its answer.
  Descriptor connection;
  std::thread accepts([&] {
    connection = Descriptor(::accept(listener->socket.number(), nullptr, nullptr));
    listener.reset();
  });
  EXPECT_EQ(refusal(port), "nothing listens there (Connection refused)");
  accepts.join();
}

// An address for documentation, which no host has: nobody answers, or there is no way to it.
TEST(TcpStore, ServersThatAreNotAtTheirAddressAreToldThatAddressAlone) {
  auto listener = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const std::string told = refusal(listener->port, "192.0.2.7",
                                   {.is_here = true, .listen_fd = listener->socket.release()});
  EXPECT_TRUE(
      told.starts_with("MASTER_ADDR is '192.0.2.7', where this host, which serves the "
                       "ranks' store, does not reach itself: nothing listens there ("))
      << told;
  EXPECT_TRUE(told.ends_with("). Set it to the name or address of rank 0's host")) << told;
}

}  // namespace
}  // namespace phalanx
