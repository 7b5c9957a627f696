// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/prefetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {

Prefetcher::Prefetcher(Make make, int64_t count, int64_t workers, int64_t capacity)
    : make_(std::move(make)), count_(count), slots_(static_cast<size_t>(capacity)) {
  const int64_t threads = std::min(workers, count);  // More would have nothing to do.
  try {
    for (int64_t i = 0; i < threads; ++i) {
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  } catch (const std::system_error& error) {
    throw UserError(fmt::format(
        "num_workers {}: the system starts only {} threads here ({}); lower it, or raise the "
        "limits of processes and memory (ulimit -u, -d, -v)",
        workers, workers_.size(), error.what()));
  }
}

void Prefetcher::work(const std::stop_token& stop) {
  const auto capacity = static_cast<int64_t>(slots_.size());
  std::unique_lock lock(mutex_);
  while (
      room_.wait(lock, stop, [&] { return claimed_ == count_ || claimed_ < handed_ + capacity; })) {
    if (claimed_ == count_ || stop.stop_requested()) return;
    const int64_t number = claimed_++;
    lock.unlock();
    Slot made;
    try {
      made.batch = make_(number);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.ready = true;
    lock.lock();
    slot(number) = std::move(made);
    filled_.notify_one();
  }
}

std::unique_ptr<Batch> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  Slot& mine = slot(handed_);
  filled_.wait(lock, [&] { return mine.ready; });
  if (mine.error) std::rethrow_exception(mine.error);
  std::unique_ptr<Batch> batch = std::move(mine.batch);
  mine = {};
  ++handed_;
  room_.notify_one();
  return batch;
}

}  // namespace phalanx
