// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/json_lines.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <utility>

#include "trainer/io/file.h"

namespace phalanx {
namespace {

// What a line must begin with behind what is there: the end of one that a crash has torn.
std::string_view end_of_torn_line(const File& file) {
  const uint64_t size = file.size();
  if (size == 0) return "";
  std::array<std::byte, 1> last{};
  file.read(last, size - 1);
  return last.front() == std::byte{'\n'} ? "" : "\n";
}

}  // namespace

int64_t append_line(const std::filesystem::path& path, std::string_view line) {
  File file(path, O_RDWR | O_CREAT | O_APPEND);
  file.append(fmt::format("{}{}\n", end_of_torn_line(file), line));
  file.sync();
  sync_folder(path.parent_path());
  return std::ssize(lines_of(path));
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  try {
    std::istringstream text(read_text(path));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
  } catch (const IoError& error) {
    if (error.error() != ENOENT) throw;
  }
  return lines;
}

std::vector<nlohmann::json> objects_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> objects;
  for (const std::string& line : lines_of(path)) {
    auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) objects.push_back(std::move(json));
  }
  return objects;
}

std::string utc_now() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace phalanx
