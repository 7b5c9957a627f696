// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/brief_waits.h"

#include <dlfcn.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <system_error>
#include <vector>

namespace phalanx {
namespace {

constexpr int64_t kMostSleepers = 256;
// Of threads that may be started beside the sleepers between the probe and their start.
constexpr int64_t kSpare = 32;

using RunTeam = void (*)(void (*work)(void*), void* data, unsigned threads, unsigned flags);
using CountThreads = int (*)();

// LLVM's and Intel's libraries have libgomp's functions, too.
RunTeam run_team_of_libgomp() {
  for (const char* of_others : {"__kmpc_fork_call", "kmp_get_blocktime"}) {
    if (::dlsym(RTLD_DEFAULT, of_others) != nullptr) return nullptr;
  }
  return reinterpret_cast<RunTeam>(::dlsym(RTLD_DEFAULT, "GOMP_parallel"));
}

// How threads wait, or with what memory or in what number libgomp starts them: the probe's threads
// say nothing of other stacks.
bool has_choice_of_user() {
  constexpr std::array kVariables = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_STACKSIZE",
                                     "GOMP_STACKSIZE", "OMP_THREAD_LIMIT"};
  for (const char* variable : kVariables) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

int64_t cores_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : kMostSleepers;
}

// libgomp counts them when it is loaded; a rank is bound to some of them later.
const int64_t cores_at_load = cores_of_affinity();

// Where libgomp cannot start a thread it ends the process: so many are started here first.
bool can_start(int64_t threads) {
  std::latch end(1);
  std::vector<std::thread> started;
  bool has_failed = false;
  try {
    started.reserve(static_cast<size_t>(threads));
    while (std::ssize(started) < threads) {
      started.emplace_back([&end] { end.wait(); });
    }
  } catch (const std::exception&) {
    has_failed = true;
  }
  end.count_down();
  for (std::thread& thread : started) thread.join();
  return !has_failed;
}

void count_one(void* count) { ++*static_cast<std::atomic<int64_t>*>(count); }

}  // namespace

BriefWaits::~BriefWaits() { end(); }

bool BriefWaits::are_possible() {
  return run_team_of_libgomp() != nullptr && !has_choice_of_user() && cores_at_load < kMostSleepers;
}

bool BriefWaits::start() {
  if (sleepers_.joinable()) return true;
  if (has_failed_) return false;
  has_failed_ = true;
  if (!are_possible() || !can_start(cores_at_load + 1 + kSpare)) return false;
  state_ = State::waiting;
  try {
    sleepers_ = std::thread([this] { sleep_as_team(); });
  } catch (const std::system_error&) {
    return false;
  }
  {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return state_ != State::waiting; });
    has_failed_ = state_ == State::refused;
  }
  if (has_failed_) sleepers_.join();
  return !has_failed_;
}

void BriefWaits::end() {
  if (!sleepers_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::ending;
  }
  change_.notify_all();
  sleepers_.join();
}

// A thread that libgomp has not seen gets a team of its own, which sleeps between its tasks, counts
// meanwhile, and ends with the thread.
void BriefWaits::sleep_as_team() {
  const int64_t wanted = cores_at_load + 1;
  std::atomic<int64_t> came = 0;
  run_team_of_libgomp()(count_one, &came, static_cast<unsigned>(wanted), 0);
  std::unique_lock lock(mutex_);
  state_ = came == wanted ? State::asleep : State::refused;
  change_.notify_all();
  change_.wait(lock, [this] { return state_ != State::asleep; });
}

int64_t openmp_threads() {
  const auto count = reinterpret_cast<CountThreads>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return count == nullptr ? 1 : count();
}

}  // namespace phalanx
