// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/ranks/ranks.h"
#include "trainer/rpc/agent.h"
#include "trainer/rpc/served.h"
#include "trainer/rpc/wire.h"

namespace phalanx::rpc {

/// What an agent shares with the references that it has handed out.
struct Agent::State {
  Ranks ranks;
  std::vector<std::string> workers;
  std::chrono::milliseconds timeout{0};
  std::shared_ptr<Served> served;
  std::unique_ptr<Wire> wire;
  std::atomic<bool> is_open = false;
  std::atomic<int64_t> next_id = 0;  ///< For values that this worker has others make.

  const std::string& name() const { return workers[static_cast<size_t>(ranks.rank())]; }
  /// Throws std::invalid_argument for a worker that is not there.
  int64_t rank_of(const std::string& worker) const;
  /// Throws std::logic_error once the agent has ended.
  void require_open() const;

  Future call(const std::string& worker, const std::string& function, Values arguments,
              std::optional<std::chrono::milliseconds> call_timeout) const;
  /// One handle less of a value.
  void release(const std::string& owner, int64_t id) const;
};

}  // namespace phalanx::rpc
