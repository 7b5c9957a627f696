// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/pauses.h"

#include <pthread.h>

#include <system_error>

#include "trainer/base/blocked_signals.h"

namespace phalanx {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(500);
constexpr auto kLeast = std::chrono::seconds(2);

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

PauseWatch::PauseWatch() : log_(kInterval, kLeast, PauseLog::Clock::now()) {
  const BlockedSignals blocked;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // Nothing is known of pauses then.
  }
}

std::optional<PauseLog::Clock::duration> PauseWatch::pause_within(
    PauseLog::Clock::duration span) const {
  if (!thread_.joinable()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return log_.pause_within(span, PauseLog::Clock::now());
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
