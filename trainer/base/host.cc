// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/host.h"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace phalanx {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  const bool is_named = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return is_named ? name.data() : "localhost";
}

std::string host_identity(const std::filesystem::path& root) {
  std::string boot;
  std::getline(std::ifstream(root / "proc/sys/kernel/random/boot_id"), boot);
  return boot.empty() ? host_name() : host_name() + ' ' + boot;
}

}  // namespace phalanx
