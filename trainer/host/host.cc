// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/host.h"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <system_error>

namespace phalanx {
namespace {

// Empty where the kernel does not tell it.
std::string boot_id(const std::filesystem::path& root) {
  std::string boot;
  std::getline(std::ifstream(root / "proc/sys/kernel/random/boot_id"), boot);
  return boot;
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  const bool is_named = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return is_named ? name.data() : "localhost";
}

std::string host_identity(const std::filesystem::path& root) {
  const std::string boot = boot_id(root);
  return boot.empty() ? host_name() : host_name() + ' ' + boot;
}

std::string loopback_identity(const std::filesystem::path& root) {
  const std::string boot = boot_id(root);
  std::error_code unreadable;
  const auto network = std::filesystem::read_symlink(root / "proc/self/ns/net", unreadable);
  return (boot.empty() ? host_name() : boot) + ' ' + network.string();
}

}  // namespace phalanx
