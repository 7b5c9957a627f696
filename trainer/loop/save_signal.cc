// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/save_signal.h"

#include <atomic>
#include <csignal>

namespace phalanx {
namespace {

using Duration = SaveSignal::Clock::duration;

constexpr Duration::rep kNone = 0;
// Since the clock's epoch; a handler may store it.
std::atomic<Duration::rep> came_at = kNone;
static_assert(std::atomic<Duration::rep>::is_always_lock_free);

void note(int) { came_at = SaveSignal::Clock::now().time_since_epoch().count(); }

}  // namespace

void SaveSignal::install() {
  came_at = kNone;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // writes in flight go on
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
}

std::optional<SaveSignal::Clock::time_point> SaveSignal::take() {
  const Duration::rep time = came_at.exchange(kNone);
  if (time == kNone) return std::nullopt;
  return Clock::time_point(Duration(time));
}

}  // namespace phalanx
