// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/descriptor.h"
#include "trainer/launch/agent/remote_node.h"

namespace phalanx {

/// The launches of other hosts that this one has started. A process of its own runs their commands
/// and shows what they print. Each command's standard input stays open until it has to end: the
/// launch at its other side ends when that is closed, so that none outlives this process, however
/// it dies.
class RemoteNodes {
 public:
  /// Starts them, if there are any. `patience`: what a command is given from the end of its input
  /// until SIGKILL. `leave` is called in the process that is forked for them, to give up what it
  /// must not keep of this one. Throws std::system_error.
  RemoteNodes(const std::vector<RemoteNode>& nodes, std::chrono::milliseconds patience,
              const std::function<void()>& leave);
  RemoteNodes(const RemoteNodes&) = delete;
  RemoteNodes& operator=(const RemoteNodes&) = delete;
  /// Has them end, and waits.
  ~RemoteNodes();

  /// Becomes readable when `take_failure` has something; -1 without nodes.
  int descriptor() const { return socket_.number(); }
  /// Why the run cannot go on: a host that was not reached, or whose launch has ended too early.
  /// Never waits.
  std::optional<std::string> take_failure();

  /// Has all end, after a run that has ended with `exit_code`, and waits. Why that may be so: one
  /// ended before the run and with another exit code.
  std::optional<std::string> finish(int exit_code);

  /// In a rank that this process has forked: its end of the connection must not outlive the agent.
  void leave_to_child() { socket_.close(); }

 private:
  Descriptor socket_;
  pid_t process_ = 0;
};

}  // namespace phalanx
