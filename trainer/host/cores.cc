// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <limits>
#include <string_view>

#include "trainer/host/cgroup.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

int64_t threads_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(int64_t{1}, int64_t{::sysconf(_SC_NPROCESSORS_ONLN)});  // more than a set holds
}

// Whole hardware threads by microseconds in each period; "max" and -1 stand for no quota.
int64_t threads_of_quota(std::istream& quota_text, std::istream& period_text) {
  int64_t quota = 0;
  int64_t period = 0;
  const bool is_limited =
      (quota_text >> quota) && (period_text >> period) && quota > 0 && period > 0;
  return is_limited ? quota / period : std::numeric_limits<int64_t>::max();
}

}  // namespace

// The least of all groups around this process.
int64_t cpu_quota(const fs::path& root) {
  int64_t threads = std::numeric_limits<int64_t>::max();
  for (const fs::path& group : control_groups("", root)) {
    std::ifstream both(group / "cpu.max");
    threads = std::min(threads, threads_of_quota(both, both));
  }
  for (const fs::path& group : control_groups("cpu", root)) {
    std::ifstream quota(group / "cpu.cfs_quota_us");
    std::ifstream period(group / "cpu.cfs_period_us");
    threads = std::min(threads, threads_of_quota(quota, period));
  }
  return threads;
}

int64_t usable_hardware_threads(const fs::path& root) {
  return std::max(int64_t{1}, std::min(threads_of_affinity(), cpu_quota(root)));
}

std::string allowed_cores(const fs::path& root) {
  constexpr std::string_view kField = "Cpus_allowed_list:";
  std::ifstream status(root / "proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with(kField)) continue;
    const size_t begin = line.find_first_not_of(" \t", kField.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

}  // namespace phalanx
