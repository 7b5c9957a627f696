// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace phalanx::test_device {

/// A thread that carries out jobs one after the other. It starts with the first: ranks may be
/// forked before.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Carries out what has been given to it.
  ~Worker();

  /// The job's end, with what it throws.
  std::shared_future<void> start(std::function<void()> job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace phalanx::test_device
