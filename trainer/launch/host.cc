#include "trainer/launch/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// nvidia0, but not nvidiactl, nvidia-uvm, nvidia-caps.
bool is_gpu(std::string_view file) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!file.starts_with(kPrefix) || file.size() == kPrefix.size()) return false;
  file.remove_prefix(kPrefix.size());
  return std::all_of(file.begin(), file.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

// CUDA reads the list up to the first entry that is no device, for which people write -1.
int64_t entries_of_device_list(const std::string& list) {
  std::istringstream entries(list);
  int64_t count = 0;
  for (std::string entry; std::getline(entries, entry, ',');) {
    const size_t first = entry.find_first_not_of(' ');
    if (first == std::string::npos || entry[first] == '-') break;
    ++count;
  }
  return count;
}

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

int64_t usable_gpus(const fs::path& root) {
  int64_t count = 0;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(root / "dev", unreadable)) {
    if (is_gpu(entry.path().filename().string())) ++count;
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? count : std::min(count, entries_of_device_list(visible));
}

int64_t usable_cores(const fs::path& root) {
  return std::max(int64_t{1}, std::min(cores_of_affinity(), cores_of_quotas(root)));
}

}  // namespace phalanx
