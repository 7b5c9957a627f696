// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/machine.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace phalanx::compute {
namespace {

bool matters(const std::string& flag) {
  return flag == "fma" || flag == "f16c" || flag == "asimd" || flag == "sve" ||
         flag.starts_with("avx") || flag.starts_with("amx");
}

// "key : value" without the spaces around; empty for another line.
std::string value_of(const std::string& line, const std::string& key) {
  if (!line.starts_with(key)) return {};
  const size_t begin = line.find_first_not_of(" \t:", key.size());
  return begin == std::string::npos ? std::string() : line.substr(begin);
}

}  // namespace

std::string describe_cpu(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/cpuinfo");
  std::string name;
  std::set<std::string> sets;  // in an order of ours
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (name.empty()) name = value_of(line, "model name");
    std::istringstream flags(value_of(line, "flags"));
    for (std::string flag; flags >> flag;) {
      if (matters(flag)) sets.insert(flag);
    }
  }
  if (name.empty() && sets.empty()) return "unknown";
  std::string text = name.empty() ? "unknown" : name;
  for (const std::string& set : sets) text += (set == *sets.begin() ? ", " : " ") + set;
  return text;
}

}  // namespace phalanx::compute
