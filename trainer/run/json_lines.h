// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

// Files to which each start of a run adds one line (starts.jsonl, ends.jsonl).

/// Adds a line at the end of a file, durably, and makes the file if need be; a line that a crash
/// has torn is ended first. Returns the number of the new line, from 1. Throws IoError.
int64_t append_line(const std::filesystem::path& path, std::string_view line);

/// The lines of a file without their ends, the last one also where it is torn; none of a file that
/// does not exist. Throws IoError.
std::vector<std::string> lines_of(const std::filesystem::path& path);

/// The objects of such a file; lines that a crash has torn are left out. Throws IoError.
std::vector<nlohmann::json> objects_of(const std::filesystem::path& path);

/// Now, as those lines have it: UTC, ISO 8601, in seconds.
std::string utc_now();

}  // namespace phalanx
