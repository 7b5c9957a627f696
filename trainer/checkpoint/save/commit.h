// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "trainer/io/file.h"

namespace phalanx {

/// A checkpoint in the making: a folder beside its final place, under a name that is no
/// checkpoint's, locked while this process lives. Removed at scope exit unless committed.
class StagedFolder {
 public:
  /// Creates the folder for `destination`. Throws IoError.
  explicit StagedFolder(std::filesystem::path destination);
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder();

  /// Where to write.
  const std::filesystem::path& path() const { return path_; }

  /// Has the names in the folder on disk. Throws IoError.
  void sync() { lock_->sync(); }

  /// Puts the folder at its destination, durably; one that stands there is replaced, and removed
  /// afterwards. The files in it have been fsynced before. Throws IoError; where it could not be
  /// made durable only, it stands there, and the other one still beside it.
  void commit();

  /// The same where nothing, or an empty folder, stands there; throws IoError for anything else.
  void commit_as_new();

 private:
  std::filesystem::path destination_;
  std::filesystem::path path_;
  std::optional<File> lock_;
  bool stays_ = false;  ///< What is at `path_` may still be needed.
};

/// Puts `folder` in the place of `destination`, which exists, without an instant with neither.
/// Afterwards `folder` is what stood there. False where the file system cannot do that.
bool exchange_folders(const std::filesystem::path& folder,
                      const std::filesystem::path& destination);

/// The same by two renames, for file systems without exchange: between them, and after a crash
/// there, the old folder stands aside as `<destination>.replaced-<pid>`, from where
/// `clean_leftovers` puts it back. Removes the old one.
void replace_in_two_steps(const std::filesystem::path& folder,
                          const std::filesystem::path& destination);

}  // namespace phalanx
