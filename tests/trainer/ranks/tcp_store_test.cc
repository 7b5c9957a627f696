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

// Why no store is found at this port of 127.0.0.1.
std::string refusal(uint16_t port) {
  try {
    open_tcp_store({.host = "127.0.0.1", .port = port, .setting = "MASTER_ADDR"},
                   {.is_here = false}, std::chrono::milliseconds(100));
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

}  // namespace
}  // namespace phalanx
