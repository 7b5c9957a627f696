// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace phalanx {

/// Has threads of OpenMP that wait for each other sleep after some microseconds, as long as it is
/// asked to. libgomp chooses so itself while it has more threads than cores, and looks at each
/// wait: it is given threads, which sleep. They have the signal mask of the caller.
class BriefWaits {
 public:
  BriefWaits() = default;
  BriefWaits(const BriefWaits&) = delete;
  BriefWaits& operator=(const BriefWaits&) = delete;
  ~BriefWaits();

  /// Whether this program's OpenMP is libgomp, nobody has chosen how its threads wait, and no more
  /// than 256 threads are needed.
  static bool are_possible();

  /// Makes waits brief, but not while another process of this user does so: then a later call may
  /// (are_brief). Returns false where they are not possible, or this process may not have so many
  /// more threads; then it does not try again.
  bool start();

  /// Leaves waits to libgomp again. Does nothing where they are.
  void end();

  bool are_brief() const { return sleepers_.joinable(); }

 private:
  // What runs in `sleepers_`.
  void sleep_as_team();

  std::mutex mutex_;
  std::condition_variable change_;
  enum class State { waiting, asleep, refused, ending } state_ = State::waiting;  // of the team
  bool has_failed_ = false;
  std::thread sleepers_;
};

/// Threads that OpenMP gives what this thread computes; 1 where this program has no OpenMP.
int64_t openmp_threads();

}  // namespace phalanx
