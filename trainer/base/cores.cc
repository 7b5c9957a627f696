#include "trainer/base/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

int64_t cores_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(int64_t{1}, int64_t{::sysconf(_SC_NPROCESSORS_ONLN)});  // more than a set holds
}

// The line "0::/path" of version 2.
std::string control_group(const fs::path& root) {
  constexpr std::string_view kPrefix = "0::/";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with(kPrefix)) return line.substr(kPrefix.size());
  }
  return "";
}

// "<microseconds> <per microseconds>", or "max ..." and no number.
int64_t cores_of_quota(const fs::path& file) {
  std::ifstream text(file);
  int64_t quota = 0;
  int64_t period = 0;
  if (!(text >> quota >> period) || period <= 0) return std::numeric_limits<int64_t>::max();
  return quota / period;
}

// The least of a group and those around it. Where a container hides the outer ones, the group's
// path does not exist, and the topmost folder is the container's own.
int64_t cores_of_quotas(const fs::path& root) {
  const fs::path top = root / "sys/fs/cgroup";
  int64_t cores = cores_of_quota(top / "cpu.max");
  fs::path folder = top;
  for (const fs::path& part : fs::path(control_group(root))) {
    folder /= part;
    cores = std::min(cores, cores_of_quota(folder / "cpu.max"));
  }
  return cores;
}

}  // namespace

int64_t usable_cores(const fs::path& root) {
  return std::max(int64_t{1}, std::min(cores_of_affinity(), cores_of_quotas(root)));
}

}  // namespace phalanx
