// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/mapped_file.h"

namespace phalanx {

/// The lines of JSONL files, by number; lines without text are left out. Each line is read when it
/// is asked for. Thread-safe.
class JsonLines {
 public:
  /// Reads all files once to find the lines, and keeps 16 bytes of each, and all that a packed file
  /// unpacks to. Throws UserError, beginning with `field`, for a file that cannot be
  /// read or has no lines, and for one whose first line is no JSON object.
  JsonLines(const std::string& field, const std::vector<std::filesystem::path>& files);

  int64_t size() const { return static_cast<int64_t>(lines_.size()); }

  /// How long a line is.
  int64_t bytes(int64_t index) const { return lines_.at(static_cast<size_t>(index)).bytes; }

  /// The object of a line. Throws BrokenSampleError, with file and line, for one that is none.
  nlohmann::json object(int64_t index) const;

  std::string file_of(int64_t index) const;

  /// The file of a line and its number there, for messages: "'train.jsonl', line 12".
  std::string place_of(int64_t index) const;

  /// A hash (XXH3, 64 bits) of all lines, however they are cut into files and packed.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct File {
    std::filesystem::path path;
    std::optional<MappedFile> mapped;  // Of one that is not packed.
    std::string unpacked;              // Of one that is.
  };
  struct Line {
    int64_t offset;
    int32_t bytes;
    int32_t file;
  };
  class Finder;

  const File& file(int64_t index) const;
  std::string text(const File& file, int64_t offset, int64_t bytes) const;

  std::vector<File> files_;
  std::vector<Line> lines_;  // Of all files.
  std::string fingerprint_;
};

}  // namespace phalanx
