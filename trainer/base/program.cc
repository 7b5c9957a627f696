// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/program.h"

#include <fstream>

namespace phalanx {

std::string program_name(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/self/cmdline", std::ios::binary);
  std::string name;
  std::getline(file, name, '\0');
  return name.empty() ? "trainer" : name;
}

}  // namespace phalanx
