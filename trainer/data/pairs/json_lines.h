// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/data/data_file.h"
#include "trainer/io/file_list.h"

namespace phalanx {

/// The lines of JSONL files, by number; lines without text are left out. The objects of a file that
/// is a JSON array (TextForm) count as lines. Each line is read when it is asked for. Thread-safe.
class JsonLines {
 public:
  /// Reads all files once to find the lines, and keeps 16 bytes of each, and all that a packed file
  /// unpacks to. Throws UserError, beginning with `field`, for a file that cannot be
  /// read, is no text or has no lines, and for one whose first line is no JSON object.
  JsonLines(const std::string& field, const FileList& files);

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
  struct Line {
    int64_t offset;
    int32_t bytes;
    int32_t file;
  };
  class Finder;

  void find_lines(int32_t file, Finder& finder);
  std::string text(int32_t file, int64_t offset, int64_t bytes) const;

  std::shared_ptr<const DataFiles> files_;
  std::map<int32_t, std::string> unpacked_;  // What the files that are packed hold.
  std::vector<bool> is_array_;               // By file.
  std::vector<Line> lines_;                  // The lines of all files.
  std::string fingerprint_;
};

}  // namespace phalanx
