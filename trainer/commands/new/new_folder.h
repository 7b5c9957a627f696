// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/checkpoint/save/commit.h"

namespace phalanx {

/// A folder that a command makes: it stands beside its place until it is whole, and is gone again
/// where that fails. What a killed command has left there goes with the next one, unless it was
/// killed in the instant between its last two steps.
class NewFolder {
 public:
  /// Throws UserError for a destination that exists and is no empty folder; IoError.
  explicit NewFolder(const std::filesystem::path& destination);

  /// Where to write.
  const std::filesystem::path& path() const { return staged_.path(); }
  /// Where it will be: absolute.
  const std::filesystem::path& destination() const { return destination_; }

  /// Puts it there, durably, if the place is still free. Throws IoError.
  void commit();

 private:
  std::filesystem::path destination_;
  StagedFolder staged_;
};

}  // namespace phalanx
