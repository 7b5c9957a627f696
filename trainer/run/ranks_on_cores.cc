// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/ranks_on_cores.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "trainer/host/cores.h"

namespace phalanx {
namespace {

// Equal for processes that see each other and run on the same cores.
std::string place() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code unknown;
  const std::filesystem::path numbers = std::filesystem::read_symlink("/proc/self/ns/pid", unknown);
  return fmt::format("{} {} {}", boot, numbers.string(), allowed_cores());
}

}  // namespace

std::vector<pid_t> ranks_on_cores(const Ranks& ranks) {
  const std::string own = place();
  std::vector<pid_t> found;
  for (const std::string& text : ranks.all_gather(fmt::format("{} {}", ::getpid(), own))) {
    const size_t end = text.find(' ');
    if (std::string_view(text).substr(end + 1) == own) found.push_back(std::stoi(text));
  }
  return found;
}

}  // namespace phalanx
