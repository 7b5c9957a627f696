// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/brief_waits.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <string>
#include <system_error>
#include <vector>

namespace phalanx {
namespace {

constexpr int64_t kMostSleepers = 256;
// Spare threads: so many may be started beside the sleepers between the probe and their start, by
// this process, and as a team of OpenMP for the ranks of all cores.
constexpr int64_t kSpareOfProcess = 32;

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

int64_t spare_threads() {
  const int64_t cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return kSpareOfProcess + std::clamp<int64_t>(cores, 0, kMostSleepers);
}

std::filesystem::path lock_file() {
  const std::string name = "phalanx_brief_waits_" + std::to_string(::geteuid());
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR")) {
    return std::filesystem::path(folder) / name;
  }
  std::error_code unknown;
  return std::filesystem::temp_directory_path(unknown) / name;
}

/// Held by one process of this user on this host at a time: another one's probe would take the
/// threads that this one is about to start. Where there can be no such file nobody is kept out.
class TurnOfHost {
 public:
  TurnOfHost()
      : descriptor_(::open(lock_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                           S_IRUSR | S_IWUSR)),
        is_taken_(descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 &&
                  errno == EWOULDBLOCK) {}
  TurnOfHost(const TurnOfHost&) = delete;
  TurnOfHost& operator=(const TurnOfHost&) = delete;
  ~TurnOfHost() {
    if (descriptor_ < 0) return;
    if (!is_taken_) ::flock(descriptor_, LOCK_UN);  // a forked process may still have it open
    ::close(descriptor_);
  }

  bool is_taken() const { return is_taken_; }

 private:
  int descriptor_;
  bool is_taken_;  // by another process
};

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
  if (!are_possible()) return false;
  const TurnOfHost turn;
  if (turn.is_taken()) return true;
  has_failed_ = true;
  if (!can_start(cores_at_load + 1 + spare_threads())) return false;
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
