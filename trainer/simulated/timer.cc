// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/timer.h"

#include <utility>

namespace phalanx {

Timer::~Timer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Timer::at(Clock::time_point time, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace(time, std::move(function));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
}

void Timer::run() {
  std::unique_lock lock(mutex_);
  while (!ends_ || !waiting_.empty()) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto next = waiting_.begin();
    if (const auto time = next->first; !ends_ && Clock::now() < time) {
      changed_.wait_until(lock, time);
      continue;
    }
    const auto function = std::move(next->second);
    waiting_.erase(next);
    lock.unlock();
    function();
    lock.lock();
  }
}

}  // namespace phalanx
