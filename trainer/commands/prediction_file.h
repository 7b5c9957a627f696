// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/io/file.h"

namespace phalanx {

/// The file that predictions come to, a line a sample. Until it is whole it is FILE.part, with
/// FILE.part.json beside it, which says what it is of: a command that was killed and is started
/// again goes on behind the last whole line.
class PredictionFile {
 public:
  explicit PredictionFile(std::filesystem::path path);

  /// Begins, or goes on with what an earlier command has written of the same: `identity` names
  /// model, config and samples. Returns how many samples are done, whole batches of `batch_size` of
  /// `samples`. Throws UserError for the part of another one; IoError.
  int64_t begin(const std::string& identity, int64_t batch_size, int64_t samples);

  /// Adds lines without their ends. Throws IoError.
  void add(const std::vector<std::string>& lines);

  /// Makes it FILE. Throws IoError.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path part_;
  std::filesystem::path journal_;
  std::optional<File> file_;
};

}  // namespace phalanx
