// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

std::optional<size_t> number(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// nvidia0, but not nvidiactl, nvidia-uvm, nvidia-caps.
bool is_gpu(std::string_view file) {
  constexpr std::string_view kPrefix = "nvidia";
  return file.starts_with(kPrefix) && number(file.substr(kPrefix.size()));
}

// A control group may forbid a device whose file is there: a Slurm job has its own GPUs alone.
bool may_use(const fs::path& device) { return ::access(device.c_str(), R_OK | W_OK) == 0; }

// The entries of CUDA_VISIBLE_DEVICES; nullopt where it is not set. CUDA reads them up to the first
// that is no device, for which people write -1.
std::optional<std::vector<std::string>> visible_devices() {
  const char* list = std::getenv(kVisibleDevices);
  if (list == nullptr) return std::nullopt;
  std::istringstream text(list);
  std::vector<std::string> entries;
  for (std::string entry; std::getline(text, entry, ',');) {
    entry.erase(0, entry.find_first_not_of(' '));
    if (entry.empty() || entry[0] == '-') break;
    if (entry.starts_with("No")) break;  // NoDevFiles: Slurm's word for none
    entries.push_back(entry);
  }
  return entries;
}

// A GPU as the driver describes it, in /proc/driver/nvidia/gpus/0000:07:00.0/information.
struct DriversGpu {
  std::string address;
  std::string uuid;
};

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

std::map<std::string, std::string> fields_of(const fs::path& information) {
  std::map<std::string, std::string> fields;
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    fields[line.substr(0, colon)] = trimmed(std::string_view(line).substr(colon + 1));
  }
  return fields;
}

// Those that this process may use, by address.
std::vector<DriversGpu> gpus_of_driver(const fs::path& root) {
  std::vector<DriversGpu> gpus;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", unreadable)) {
    auto fields = fields_of(entry.path() / "information");
    if (!may_use(root / "dev" / ("nvidia" + fields["Device Minor"]))) continue;
    gpus.push_back({.address = entry.path().filename(), .uuid = fields["GPU UUID"]});
  }
  std::ranges::sort(gpus, {}, &DriversGpu::address);
  return gpus;
}

// An entry of CUDA_VISIBLE_DEVICES is a number, or the beginning of a UUID.
std::optional<std::string> address_of(const std::string& entry,
                                      const std::vector<DriversGpu>& gpus) {
  if (const auto index = number(entry)) {
    return *index < gpus.size() ? std::optional(gpus[*index].address) : std::nullopt;
  }
  const auto found = std::ranges::find_if(
      gpus, [&](const DriversGpu& gpu) { return gpu.uuid.starts_with(entry); });
  return found == gpus.end() ? std::nullopt : std::optional(found->address);
}

}  // namespace

int64_t usable_gpus(const fs::path& root) {
  int64_t count = 0;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(root / "dev", unreadable)) {
    if (is_gpu(entry.path().filename().string()) && may_use(entry.path())) ++count;
  }
  const auto visible = visible_devices();
  return visible ? std::min(count, static_cast<int64_t>(visible->size())) : count;
}

std::vector<std::string> gpu_addresses(const fs::path& root) {
  const std::vector<DriversGpu> gpus = gpus_of_driver(root);
  const auto visible = visible_devices();
  std::vector<std::string> addresses;
  if (!visible) {
    std::ranges::transform(gpus, std::back_inserter(addresses), &DriversGpu::address);
    return addresses;
  }
  for (const std::string& entry : *visible) {
    const auto address = address_of(entry, gpus);
    if (!address) return {};
    addresses.push_back(*address);
  }
  return addresses;
}

void hide_gpus() { ::setenv(kVisibleDevices, "", 1); }

}  // namespace phalanx
