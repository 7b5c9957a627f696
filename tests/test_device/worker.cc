// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/worker.h"

#include <utility>

namespace phalanx::test_device {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_future<void> Worker::start(std::function<void()> job) {
  std::packaged_task<void()> task(std::move(job));
  std::shared_future<void> end = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
  return end;
}

void Worker::run() {
  for (;;) {
    std::packaged_task<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace phalanx::test_device
