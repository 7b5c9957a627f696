// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/pauses.h"

#include <pthread.h>

#include <system_error>

#include "trainer/base/blocked_signals.h"

namespace phalanx {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(500);
constexpr auto kLeast = std::chrono::seconds(2);

// From the end of a pause to the error that it leads to.
constexpr auto kAfterPause = std::chrono::seconds(15);

}  // namespace

PauseLog::Clock::duration PauseLog::missing(Clock::time_point now) const {
  return now - last_look_ - interval_;
}

void PauseLog::look(Clock::time_point now) {
  if (missing(now) >= least_) {
    length_ = missing(now);
    end_ = now;
  }
  last_look_ = now;
}

std::optional<PauseLog::Clock::duration> PauseLog::pause_within(Clock::duration span,
                                                                Clock::time_point now) const {
  if (missing(now) >= least_) return missing(now);
  if (length_ == Clock::duration::zero() || now - end_ > span) return std::nullopt;
  return length_;
}

std::optional<PauseLog::Clock::duration> PauseLog::pause_to_blame(Clock::duration patience,
                                                                  Clock::time_point now) const {
  const auto pause = pause_within(kAfterPause, now);
  return pause && *pause >= patience / 2 ? pause : std::nullopt;
}

PauseWatch::PauseWatch() : log_(kInterval, kLeast, PauseLog::Clock::now()) {
  const BlockedSignals blocked;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // Nothing is known of pauses then.
  }
}

std::optional<PauseLog::Clock::duration> PauseWatch::pause_to_blame(
    PauseLog::Clock::duration patience) const {
  if (!thread_.joinable()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return log_.pause_to_blame(patience, PauseLog::Clock::now());
}

void PauseWatch::watch(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "pauses");
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, kInterval, [] { return false; });
    log_.look(PauseLog::Clock::now());
  }
}

}  // namespace phalanx
