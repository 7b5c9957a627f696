// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/cgroup.h"

#include <fstream>
#include <optional>
#include <string>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// The process's group, relative to the hierarchy, by the lines "number:controllers:/path" of
/// /proc/self/cgroup; version 2's names no controller.
std::optional<fs::path> own_group(std::string_view controller, const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t begin = line.find(':');
    const std::size_t end = line.find(":/", begin + 1);
    if (begin == std::string::npos || end == std::string::npos) continue;
    const std::string controllers = "," + line.substr(begin + 1, end - begin - 1) + ",";
    const std::string wanted = "," + std::string(controller) + ",";
    if (controllers.find(wanted) != std::string::npos) return line.substr(end + 2);
  }
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> control_groups(std::string_view controller, const fs::path& root) {
  const auto own = own_group(controller, root);
  if (!own) return {};
  fs::path folder = root / "sys/fs/cgroup";
  if (!controller.empty()) folder /= controller;
  std::vector<fs::path> outermost_first{folder};
  for (const fs::path& part : *own) outermost_first.push_back(folder /= part);
  return {outermost_first.rbegin(), outermost_first.rend()};
}

}  // namespace phalanx
