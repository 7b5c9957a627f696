// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/api/batch.h"

namespace phalanx {

/// Makes batches 0, 1, ... count - 1 on background threads and hands them out in that order,
/// holding at most `capacity` that are ready or being made. May be destroyed at any time; that
/// waits for the batches being made.
class Prefetcher {
 public:
  using Make = std::function<std::unique_ptr<Batch>(int64_t number)>;

  /// `make` is called from `workers` >= 1 threads at once. Throws UserError where the system starts
  /// no more threads.
  Prefetcher(Make make, int64_t count, int64_t workers, int64_t capacity);

  /// Waits for the next batch. Rethrows what making it threw, again on every further call. Must not
  /// be called more than `count` times.
  std::unique_ptr<Batch> next();

 private:
  struct Slot {
    std::unique_ptr<Batch> batch;
    std::exception_ptr error;
    bool ready = false;
  };

  void work(const std::stop_token& stop);
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  const Make make_;
  const int64_t count_;
  std::mutex mutex_;  // Guards all below.
  std::condition_variable_any room_;
  std::condition_variable_any filled_;
  std::vector<Slot> slots_;
  int64_t claimed_ = 0;                // Batches that a worker has taken on.
  int64_t handed_ = 0;                 // Batches that next() has returned.
  std::vector<std::jthread> workers_;  // Last: joined before what they use goes.
};

}  // namespace phalanx
