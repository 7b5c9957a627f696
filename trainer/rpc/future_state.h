// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "trainer/rpc/future.h"

namespace phalanx::rpc {

/// What the handles of a Future share.
struct Future::State {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Values> values;
  std::exception_ptr error;
  std::vector<std::function<void()>> actions;  ///< Called once, when it is done.
  /// The deadline of `wait`, and the error at the deadline; see Future::within.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::exception_ptr error_at_deadline;

  bool is_done() const { return values || error; }
};

}  // namespace phalanx::rpc
