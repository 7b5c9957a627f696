// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "trainer/topology/brief_waits.h"

namespace phalanx {

/// Whether waits should be brief, from one look at the load to the next.
class WaitChoice {
 public:
  /// For so many threads, of all ranks that share the cores.
  explicit WaitChoice(int64_t threads) : threads_(threads) {}

  /// Takes what other programs have left of the cores since the last look, and chooses: brief at
  /// once where a part of a core is missing, long again after two looks without.
  bool choose(double cores_left);

 private:
  int64_t threads_;
  bool is_brief_ = false;
  int calm_looks_ = 0;
};

/// As long as it lives, threads of OpenMP that wait for each other spin as libgomp has them while
/// they have their cores for themselves, and only some microseconds while other programs leave
/// fewer cores than there are threads. A thread looks twice a second at /proc/stat. Comes after the
/// process has its cores and threads, and where only these are one process: fork() copies no
/// threads.
class WaitsByLoad {
 public:
  /// The cores that this process may run on. `processes`: those of the run that share them, by
  /// default this one. Each has as many threads as OpenMP has in this one. Does nothing where the
  /// waits cannot be made brief (BriefWaits::are_possible), one thread waits for nobody, or no
  /// thread can be started. `root` is where the file system begins.
  explicit WaitsByLoad(std::vector<pid_t> processes = {}, const std::filesystem::path& root = "/");
  WaitsByLoad(const WaitsByLoad&) = delete;
  WaitsByLoad& operator=(const WaitsByLoad&) = delete;
  ~WaitsByLoad() = default;

  /// Whether a thread looks at the load.
  bool is_on() const { return watch_.joinable(); }
  /// At present.
  bool are_brief() const { return are_brief_; }

 private:
  void watch(const std::stop_token& stop, int64_t threads);

  std::vector<pid_t> processes_;
  std::filesystem::path stat_;
  std::vector<int64_t> units_;
  std::atomic<bool> are_brief_ = false;
  std::mutex mutex_;
  std::condition_variable_any pause_;
  std::jthread watch_;  // Last: joined before what it uses goes.
};

}  // namespace phalanx
