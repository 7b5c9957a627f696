// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/remote_nodes.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "trainer/launch/agent/packets.h"
#include "trainer/launch/agent/remote_end.h"
#include "trainer/launch/agent/remote_nodes_process.h"
#include "trainer/launch/rank_child.h"

namespace phalanx {

RemoteNodes::RemoteNodes(const std::vector<RemoteNode>& nodes, std::chrono::milliseconds patience,
                         const std::function<void()>& leave) {
  if (nodes.empty()) return;
  PacketPair pair = make_packet_pair();
  flush_streams();
  process_ = ::fork();
  if (process_ == 0) {
    pair.first.close();
    leave();
    run_remote_nodes(nodes, patience, std::move(pair.second));
  }
  if (process_ < 0) throw_system_error("start the process that starts other nodes");
  socket_ = std::move(pair.first);
}

RemoteNodes::~RemoteNodes() {
  if (process_ > 0) finish(0);
}

std::optional<std::string> RemoteNodes::take_failure() {
  std::string packet;
  switch (read_packet(socket_, packet)) {
    case ReadResult::nothing_yet:
      return std::nullopt;
    case ReadResult::some:
      return remote_end_in(packet).message;
    case ReadResult::end:
      break;
  }
  return "the process that has started the other nodes died";
}

std::optional<std::string> RemoteNodes::finish(int exit_code) {
  if (process_ == 0) return std::nullopt;
  std::optional<std::string> cause;
  ::shutdown(socket_.number(), SHUT_WR);
  for (std::string packet;;) {
    pollfd news{socket_.number(), POLLIN, 0};
    ::poll(&news, 1, -1);
    const ReadResult result = read_packet(socket_, packet);
    if (result == ReadResult::end) break;
    if (result == ReadResult::nothing_yet) continue;
    const RemoteEnd end = remote_end_in(packet);
    const bool is_another_end = exit_code != 0 && end.exit_code != exit_code;
    if (is_another_end && !cause) cause = end.message;
  }
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
  return cause;
}

}  // namespace phalanx
