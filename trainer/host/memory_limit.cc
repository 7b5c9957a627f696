// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/memory_limit.h"

#include <sys/resource.h>

#include <fstream>
#include <string_view>

#include "trainer/host/cgroup.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// What the groups of a version of the kernel's memory cgroups tell.
struct CgroupVersion {
  std::string_view controller;  ///< The name in control_groups.
  const char* most;
  const char* now;
  const char* inactive_files;  ///< In memory.stat.
  const char* active_files;
};

constexpr CgroupVersion kFirst{.controller = "memory",
                               .most = "memory.limit_in_bytes",
                               .now = "memory.usage_in_bytes",
                               .inactive_files = "total_inactive_file",
                               .active_files = "total_active_file"};
constexpr CgroupVersion kSecond{.controller = "",
                                .most = "memory.max",
                                .now = "memory.current",
                                .inactive_files = "inactive_file",
                                .active_files = "active_file"};

// The number behind a word, as in "VmData:   1234 kB" or "inactive_file 4096".
std::optional<int64_t> number_after(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    int64_t value = 0;
    if (word == name && file >> value) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // there is none, or it is "max"
}

std::optional<MemoryLimit> own_limit(decltype(RLIMIT_DATA) resource, const fs::path& root,
                                     const char* used, const char* name) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const int64_t taken = number_after(root / "proc/self/status", used).value_or(0) * 1024;
  return MemoryLimit{.bytes = static_cast<int64_t>(limit.rlim_cur) - taken, .source = name};
}

// What may still be taken in a group: the kernel takes pages of files back before it refuses any.
std::optional<int64_t> room_in(const fs::path& group, const CgroupVersion& version) {
  const auto most = number_in(group / version.most);
  const auto now = number_in(group / version.now);
  if (!most || !now) return std::nullopt;
  const fs::path statistics = group / "memory.stat";
  return *most - *now + number_after(statistics, version.inactive_files).value_or(0) +
         number_after(statistics, version.active_files).value_or(0);
}

// The tightest of a group and those around it.
std::optional<int64_t> cgroup_room(const fs::path& root, const CgroupVersion& version) {
  std::optional<int64_t> tightest;
  for (const fs::path& group : control_groups(version.controller, root)) {
    const auto room = room_in(group, version);
    if (room && (!tightest || *room < *tightest)) tightest = room;
  }
  return tightest;
}

std::optional<MemoryLimit> shared(std::optional<int64_t> bytes, int64_t ranks, const char* name) {
  if (!bytes) return std::nullopt;
  return MemoryLimit{.bytes = *bytes / ranks,
                     .source = std::string(name) + ", shared by the ranks",
                     .is_shared = true};
}

std::optional<int64_t> available_on_host(const fs::path& root) {
  const auto kibibytes = number_after(root / "proc/meminfo", "MemAvailable:");
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

}  // namespace

std::optional<MemoryLimit> memory_limit(int64_t local_world_size, const fs::path& root) {
  const auto of_ranks = [&](std::optional<int64_t> bytes, const char* name) {
    return shared(bytes, local_world_size, name);
  };
  std::optional<MemoryLimit> tightest;
  for (const auto& limit : {own_limit(RLIMIT_DATA, root, "VmData:", "RLIMIT_DATA (ulimit -d)"),
                            own_limit(RLIMIT_AS, root, "VmSize:", "RLIMIT_AS (ulimit -v)"),
                            of_ranks(cgroup_room(root, kFirst), "the memory cgroup"),
                            of_ranks(cgroup_room(root, kSecond), "the memory cgroup"),
                            of_ranks(available_on_host(root), "the host's free memory")}) {
    if (limit && (!tightest || limit->bytes < tightest->bytes)) tightest = limit;
  }
  return tightest;
}

}  // namespace phalanx
