// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "trainer/io/file.h"

namespace phalanx {

/// The end of a file to which one process appends whole records, lines or events. A write that
/// fails leaves no half of one: it is cut off at once or, where the system refuses that too, before
/// the next record.
class LogFile {
 public:
  /// Opens the file, or creates it; O_EXCL refuses one that is there. Throws IoError.
  explicit LogFile(const std::filesystem::path& path, int more_flags = 0);

  /// Appends a whole record. Throws IoError, and may be called again after it.
  void append(std::string_view record);

  /// Waits until what was appended would survive a power cut, the file's name too. Throws IoError.
  void sync();

 private:
  void cut_off_half();

  File file_;
  std::optional<uint64_t> whole_;  ///< Where the last whole record ends, if half of one follows.
};

}  // namespace phalanx
