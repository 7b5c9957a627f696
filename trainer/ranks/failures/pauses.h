// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace phalanx {

/// Times for which a process did not run, as one that looks at the clock every so often sees them.
class PauseLog {
 public:
  using Clock = std::chrono::steady_clock;

  /// Looks come every `interval` from `now` on. Shorter pauses than `least` do not count: the
  /// threads of a busy host wait, too.
  PauseLog(Clock::duration interval, Clock::duration least, Clock::time_point now)
      : interval_(interval), least_(least), last_look_(now) {}

  /// Notes a look at the clock.
  void look(Clock::time_point now);

  /// The newest pause, where it ended within the last `span` or has not been noticed by a look yet.
  std::optional<Clock::duration> pause_within(Clock::duration span, Clock::time_point now) const;

  /// The pause that a failed collective at `now` is blamed on, where others wait for this process
  /// for `patience` at most: at least half as long, and just over. What fails later has another
  /// cause.
  std::optional<Clock::duration> pause_to_blame(Clock::duration patience,
                                                Clock::time_point now) const;

 private:
  // What is missing between the last look and `now`.
  Clock::duration missing(Clock::time_point now) const;

  Clock::duration interval_;
  Clock::duration least_;
  Clock::time_point last_look_;
  Clock::duration length_{0};
  Clock::time_point end_{};
};

/// Looks at the clock in a thread of its own, so that a process that was stopped by a signal, or
/// starved by its host, knows so when it goes on: it then finds the others' wait for it at an end.
class PauseWatch {
 public:
  /// Without a thread where none can be started.
  PauseWatch();
  PauseWatch(const PauseWatch&) = delete;
  PauseWatch& operator=(const PauseWatch&) = delete;
  ~PauseWatch() = default;

  /// See PauseLog; of a failure now.
  std::optional<PauseLog::Clock::duration> pause_to_blame(PauseLog::Clock::duration patience) const;

 private:
  void watch(const std::stop_token& stop);

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  PauseLog log_;
  std::jthread thread_;  // Last: joined before what it uses goes.
};

}  // namespace phalanx
