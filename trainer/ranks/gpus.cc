// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/gpus.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

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
    if (entry.compare(first, 2, "No") == 0) break;  // NoDevFiles: Slurm's word for none
    ++count;
  }
  return count;
}

}  // namespace

int64_t usable_gpus(const fs::path& root) {
  int64_t count = 0;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(root / "dev", unreadable)) {
    if (is_gpu(entry.path().filename().string())) ++count;
  }
  const char* visible = std::getenv(kVisibleDevices);
  return visible == nullptr ? count : std::min(count, entries_of_device_list(visible));
}

void hide_gpus() { ::setenv(kVisibleDevices, "", 1); }

}  // namespace phalanx
