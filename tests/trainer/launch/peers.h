// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "trainer/base/descriptor.h"
#include "trainer/launch/launcher.h"

/// Ranks that are connected as those of a run are: what one of them does to the others by ending.
namespace phalanx {

/// A rank's connections: rank 0 has one with each other rank, these have one with rank 0.
class Peers {
 public:
  /// Returns when all ranks have met.
  explicit Peers(const Environment& environment) {
    if (environment.listen_fd) {
      const Descriptor listener(*environment.listen_fd);
      for (int64_t i = 1; i < environment.world_size; ++i) {
        const int accepted = ::accept(listener.number(), nullptr, nullptr);
        connections_.push_back(take_descriptor(accepted, "accept a peer"));
      }
      for (const Descriptor& peer : connections_) ::send(peer.number(), "", 1, MSG_NOSIGNAL);
    } else {
      connections_.push_back(connect(environment.master_port));
      char greeting = 0;
      ::recv(connections_[0].number(), &greeting, 1, 0);
    }
  }

  /// Waits until one of the connections breaks.
  void wait_for_end() const {
    std::vector<pollfd> events;
    for (const Descriptor& peer : connections_) events.push_back({peer.number(), POLLIN, 0});
    while (::poll(events.data(), events.size(), -1) < 0) continue;
  }

  /// The outcome of a rank that has met a peer's end and knows it.
  RankOutcome meet_end() const {
    wait_for_end();
    return {1, "the connection to a peer was closed", true};
  }

 private:
  static Descriptor connect(uint16_t port) {
    Descriptor socket =
        take_descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "make a socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      throw_system_error("connect to rank 0");
    }
    return socket;
  }

  std::vector<Descriptor> connections_;
};

}  // namespace phalanx
