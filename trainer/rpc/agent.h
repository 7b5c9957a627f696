// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/ranks/ranks.h"
#include "trainer/rpc/functions.h"
#include "trainer/rpc/future.h"
#include "trainer/rpc/values.h"

namespace phalanx::rpc {

/// How a worker takes part.
struct AgentOptions {
  /// This worker's, unlike all others: letters, digits, '-', '_' and ':'; empty: "worker0" by rank.
  std::string name = {};
  FunctionTable functions = {};  ///< What this worker serves beside registered_functions().
  /// For calls that name none; none: that of the ranks' operations. A call waits 1 ms at least and
  /// 23 days at most.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Threads in which functions run, and answers arrive. More than there are functions that wait at
  /// a time.
  int64_t threads = 16;
};

/// This process among workers that call functions of each other: LibTorch's TensorPipe agent over
/// the ranks. It listens at the address where the ranks' process group does, at a port that is
/// free. One at a time in a process. Calls may come from several threads.
class Agent {
 public:
  struct State;

  /// Every rank makes one, and returns once all have: then all may call all. Throws
  /// std::invalid_argument for a name that two workers have or none may, std::logic_error for a
  /// second agent, for functions whose names cannot be, and for a process that had another rank in
  /// an earlier one, CommunicationError where a rank does not come within the ranks' timeout.
  Agent(const Ranks& ranks, AgentOptions options);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  /// Closes this worker's connections, as after an error. It waits for no other worker, only for
  /// functions that other workers have called and that run here now.
  ~Agent();

  const std::string& name() const;
  /// All workers, by rank.
  const std::vector<std::string>& workers() const;
  std::chrono::milliseconds timeout() const;

  /// Calls a function of a worker (rpc_sync), which may be this one: then it runs in this thread,
  /// and the timeout counts from its return. Throws WorkerLost and RemoteError, but what a function
  /// of this worker throws as it comes; std::invalid_argument for a worker that is not there.
  Values call(const std::string& worker, const std::string& function, Values arguments = {},
              std::optional<std::chrono::milliseconds> timeout = {}) const;
  /// The same without waiting (rpc_async).
  Future call_async(const std::string& worker, const std::string& function, Values arguments = {},
                    std::optional<std::chrono::milliseconds> timeout = {}) const;
  /// Has the answer stay where it is made (remote). Does not wait, except that a function of this
  /// worker runs in this thread.
  RemoteReference remote(const std::string& worker, const std::string& function,
                         Values arguments = {},
                         std::optional<std::chrono::milliseconds> timeout = {}) const;

  /// Values that remote references of all workers keep here now.
  int64_t kept_values() const;

  /// Done once a worker has answered that it is there; fails as a call, at once for one that is
  /// gone.
  Future is_there(const std::string& worker) const;
  /// Workers that do not answer within `patience`, in words: "server1 (rank 1), trainer0 (rank 2)";
  /// empty: all do. To find whom an error of several workers is about.
  std::string silent_workers(std::chrono::milliseconds patience) const;

  /// Ends in order, once all workers have come here and no call is under way. Every worker calls
  /// it; what is called afterwards throws std::logic_error. Throws CommunicationError, which names
  /// calls that are under way beyond the timeout.
  void shutdown();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace phalanx::rpc
