// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace phalanx::rpc {

struct Values;

/// A value that lies on the worker that made it (Python's RRef); see Agent::remote. A handle; the
/// owner drops the value with the last handle of all workers, and at the end of its agent. It may
/// be passed to other workers in Values. Handles that are lost count until then: those of a worker
/// that is gone, and those in a call or an answer that came too late.
class RemoteReference {
 public:
  struct State;

  explicit RemoteReference(std::shared_ptr<State> state);

  /// The worker where the value lies.
  const std::string& owner() const;
  /// Whether this process is that worker.
  bool is_owner() const;
  /// Number of the value on its owner.
  int64_t id() const;

  /// A copy of the value, once it has been made. Gradients flow to where it lies
  /// (DistributedContext). Throws WorkerLost, and RemoteError with what the function that makes it
  /// has thrown.
  Values to_here(std::optional<std::chrono::milliseconds> timeout = {}) const;
  /// The value itself, on its owner, for as long as there is a handle; waits until it has been
  /// made, at most the agent's timeout. Throws std::logic_error elsewhere.
  const Values& local_value() const&;
  /// The last handle would be gone before the value is used.
  const Values& local_value() const&& = delete;

  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace phalanx::rpc
