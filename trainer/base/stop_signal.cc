// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/stop_signal.h"

#include <atomic>

namespace phalanx {
namespace {

volatile std::sig_atomic_t received_signal = 0;
// This process's own: one that another rank told of may be the very one that is still on its way.
volatile std::sig_atomic_t interrupts = 0;
std::atomic<void (*)()> last_action = nullptr;
volatile std::sig_atomic_t was_told = 0;
std::atomic<void (*)()> tell_first = nullptr;
static_assert(std::atomic<void (*)()>::is_always_lock_free, "a handler loads them");

void note(int signal) {
  // A second SIGINT means: now. The default action then also tells the shell the truth.
  if (signal == SIGINT) interrupts = interrupts + 1;
  if (interrupts > 1) {
    if (const auto action = last_action.load()) action();
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    return;
  }
  if (received_signal == 0) received_signal = signal;
  if (was_told != 0) return;
  was_told = 1;
  if (auto* const tell = tell_first.load()) tell();
}

// As nohup leaves it for a program that is to outlive its terminal.
bool is_ignored(int signal) {
  struct sigaction present = {};
  sigaction(signal, nullptr, &present);
  return present.sa_handler == SIG_IGN;
}

}  // namespace

void StopSignal::install() {
  received_signal = 0;
  interrupts = 0;
  was_told = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // writes in flight go on
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) {
    if (signal != SIGHUP || !is_ignored(signal)) sigaction(signal, &action, nullptr);
  }
}

void StopSignal::before_end_at_once(void (*action)()) { last_action = action; }

int StopSignal::received() { return received_signal; }

void StopSignal::when_first(void (*tell)()) { tell_first = tell; }

void StopSignal::adopt(int signal) {
  if (received_signal == 0) received_signal = signal;
}

}  // namespace phalanx
