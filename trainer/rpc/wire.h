// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/rpc/future.h"
#include "trainer/rpc/values.h"

namespace c10d {
class Store;
}

namespace phalanx::rpc {

/// What a wire does for its worker.
struct WireHooks {
  /// Runs a function that another worker calls.
  std::function<Future(const std::string& function, Values arguments)> serve;
  /// Has the owners of the values' references count one more handle of each.
  std::function<Future(const Values& values)> retain;
  /// Makes the handle for which it was counted.
  std::function<RemoteReference(const std::string& owner, int64_t id)> receive;
};

/// Where a wire is laid.
struct WireOptions {
  std::vector<std::string> workers;  ///< By rank.
  int64_t rank = 0;
  std::string address;  ///< This host's, to listen at.
  int64_t threads = 16;
  std::chrono::milliseconds timeout{60000};  ///< For calls that name none.
};

/// The connections of a worker with all others: LibTorch's TensorPipe agent, hidden from who
/// includes this.
class Wire {
 public:
  /// Returns once all workers have one. Throws what LibTorch throws.
  Wire(c10::intrusive_ptr<c10d::Store> store, WireOptions options, WireHooks hooks);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  /// Calls a function of another worker. What fails is in the Future: WorkerLost, RemoteError, and
  /// what this worker itself cannot do, as it comes.
  Future call(int64_t rank, const std::string& function, Values arguments,
              std::chrono::milliseconds timeout) const;

  /// Waits until what was sent has been answered. What has not been within `timeout`, in words;
  /// empty: all has.
  std::string drain(std::chrono::milliseconds timeout) const;

  /// Ends the connections; what is under way fails.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< With answers that are under way.
};

}  // namespace phalanx::rpc
