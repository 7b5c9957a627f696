// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/io/file.h"

namespace phalanx {

/// A file of lines of JSON that a command writes. Until it is whole it is FILE.part, with
/// FILE.part.json beside it, which says what it is of: a command that was killed and is started
/// again goes on behind the last whole line.
class ResumableFile {
 public:
  explicit ResumableFile(std::filesystem::path path);

  /// Begins a file of `lines` lines, or goes on with what an earlier command has written of the
  /// same: `identity` names all that the lines follow from. Returns how many lines are there, whole
  /// batches of `batch_size`; `see` gets each of them. Throws UserError for the part of another
  /// file; IoError.
  int64_t begin(const std::string& identity, int64_t batch_size, int64_t lines,
                const std::function<void(const std::string& line)>& see);

  /// Adds lines without their ends. Throws IoError.
  void add(const std::vector<std::string>& lines);

  int64_t written() const { return written_; }

  /// Makes it FILE if it is whole; otherwise says on standard error how to go on. Throws IoError.
  void finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path part_;
  std::filesystem::path journal_;
  std::optional<File> file_;
  int64_t written_ = 0;
  int64_t lines_ = 0;
};

}  // namespace phalanx
