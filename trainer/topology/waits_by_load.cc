// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/waits_by_load.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "trainer/base/blocked_signals.h"
#include "trainer/topology/core_times.h"

namespace phalanx {
namespace {

constexpr const char* kThreadName = "phalanx waits";
constexpr std::chrono::milliseconds kPause(500);
// Parts of a core that other programs take: less goes to what every system does now and then.
constexpr double kMissing = 0.3;
constexpr double kHardlyMissing = 0.15;
constexpr int kCalmLooks = 2;

double in_seconds(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Empty where they are more than a set holds.
std::vector<int64_t> units_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int64_t> units;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return units;
  for (int unit = 0; unit < CPU_SETSIZE; ++unit) {
    if (CPU_ISSET(unit, &set)) units.push_back(unit);
  }
  return units;
}

// Counts those that still run.
double cpu_seconds(const std::vector<pid_t>& processes) {
  double sum = 0;
  for (const pid_t process : processes) {
    clockid_t clock = 0;
    timespec time{};
    if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) continue;
    sum += in_seconds(time);
  }
  return sum;
}

// nullopt where the kernel does not tell.
std::optional<UseOfCores> look(const std::filesystem::path& stat, const std::vector<int64_t>& units,
                               const std::vector<pid_t>& processes) {
  std::ostringstream text;
  text << std::ifstream(stat).rdbuf();
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto times = core_times(text.view(), units, ticks);
  if (!times) return std::nullopt;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return UseOfCores{.moment = in_seconds(now), .times = *times, .own = cpu_seconds(processes)};
}

}  // namespace

bool WaitChoice::choose(double cores_left) {
  const double missing = static_cast<double>(threads_) - cores_left;
  calm_looks_ = missing < kHardlyMissing ? calm_looks_ + 1 : 0;
  if (missing > kMissing) is_brief_ = true;
  if (calm_looks_ >= kCalmLooks) is_brief_ = false;
  return is_brief_;
}

WaitsByLoad::WaitsByLoad(std::vector<pid_t> processes, const std::filesystem::path& root)
    : processes_(std::move(processes)), stat_(root / "proc/stat"), units_(units_of_affinity()) {
  if (processes_.empty()) processes_.push_back(::getpid());
  const int64_t threads = openmp_threads();
  if (threads <= 1 || units_.empty() || !BriefWaits::are_possible()) return;
  const BlockedSignals blocked;
  try {
    watch_ = std::jthread([this, all = threads * std::ssize(processes_)](
                              const std::stop_token& stop) { watch(stop, all); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // Waits stay as libgomp has them.
  }
}

void WaitsByLoad::watch(const std::stop_token& stop, int64_t threads) {
  pthread_setname_np(pthread_self(), kThreadName);  // the sleeping threads inherit it
  BriefWaits brief;
  WaitChoice choice(threads);
  std::optional<UseOfCores> before = look(stat_, units_, processes_);
  std::unique_lock lock(mutex_);
  while (before && !pause_.wait_for(lock, stop, kPause, [&] { return stop.stop_requested(); })) {
    const auto now = look(stat_, units_, processes_);
    const auto left = now ? cores_left(*before, *now, std::ssize(units_)) : std::nullopt;
    before = now;
    if (!left) continue;
    if (!choice.choose(*left)) {
      brief.end();
    } else if (!brief.start()) {
      break;
    }
    are_brief_ = brief.are_brief();
  }
  are_brief_ = false;
}

}  // namespace phalanx
