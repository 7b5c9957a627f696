// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

namespace phalanx {

/// Calls `function` on a thread of its own and waits for it at most `timeout`; nothing when it is
/// not back by then, and rethrows what it throws. A thread that is late stays behind, with all that
/// `function` holds: so it must own what it uses. For what knows no timeout and can only be given
/// up: operations of c10d's store never end when its server's process is stopped or its host is
/// gone.
template <class Result>
std::optional<Result> call_within(std::chrono::milliseconds timeout,
                                  std::function<Result()> function) {
  std::packaged_task<Result()> task(std::move(function));
  std::future<Result> result = task.get_future();
  std::thread thread(std::move(task));
  if (result.wait_for(timeout) != std::future_status::ready) {
    thread.detach();
    return std::nullopt;
  }
  thread.join();
  return result.get();
}

}  // namespace phalanx
