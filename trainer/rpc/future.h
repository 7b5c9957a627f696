// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>

#include "trainer/rpc/values.h"

namespace phalanx::rpc {

/// What a call will answer. A handle; several threads may wait.
class Future {
 public:
  struct State;

  /// One that has been answered.
  explicit Future(Values values);
  explicit Future(std::shared_ptr<State> state);

  bool is_done() const;
  /// Waits for the answer. Throws WorkerLost, RemoteError, and what a local function has thrown.
  Values wait() const;
  /// What `next` makes of the answer; an error goes past it. `next` runs in a thread of the agent,
  /// or here if the answer is there, in the present DistributedContext. It must not block.
  Future then(std::function<Values(Values)> next) const;
  /// Calls `action` with this, once it is done, as above. What it throws is dropped.
  void when_done(std::function<void(const Future&)> action) const;
  /// The same answer, for which `wait` waits until `timeout` from now: then what this returns has
  /// failed with `error`. Without a wait it goes on for as long as it takes.
  Future within(std::chrono::milliseconds timeout, std::exception_ptr error) const;
  /// What `wait` throws; none while there is no error.
  std::exception_ptr error() const;

 private:
  std::shared_ptr<State> state_;
};

/// Where a function answers later than it returns, by whoever is last, say.
class Promise {
 public:
  Promise();
  Future future() const;
  /// Once, one of the two. Does nothing the second time.
  void set(Values values) const;
  void fail(std::exception_ptr error) const;

 private:
  std::shared_ptr<Future::State> state_;
};

/// All answers, in the order of the futures. Throws the first error, once all are done.
std::vector<Values> wait_all(const std::vector<Future>& futures);

}  // namespace phalanx::rpc
