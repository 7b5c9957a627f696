// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/commit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "trainer/checkpoint/format/layout.h"
#include "trainer/io/file_lock.h"

namespace phalanx {

namespace fs = std::filesystem;

StagedFolder::StagedFolder(fs::path destination)
    : destination_(std::move(destination)), path_(aside(destination_)) {
  remove_path(path_);  // a dead process had this one's id
  if (::mkdir(path_.c_str(), 0755) != 0) throw IoError("create the folder", path_, errno);
  lock_.emplace(path_, O_RDONLY | O_DIRECTORY);
  mark_in_use(*lock_);
}

StagedFolder::~StagedFolder() {
  if (stays_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void StagedFolder::commit() {
  sync();
  if (!fs::exists(destination_)) {
    rename_path(path_, destination_);
  } else if (!exchange_folders(path_, destination_)) {
    replace_in_two_steps(path_, destination_);
  }
  // A power cut may bring the exchange back as it was.
  stays_ = true;
  sync_folder(destination_.parent_path());
  stays_ = false;
}

void StagedFolder::commit_as_new() {
  sync();
  rename_path(path_, destination_);  // which replaces no folder that holds anything
  sync_folder(destination_.parent_path());
}

bool exchange_folders(const fs::path& folder, const fs::path& destination) {
  if (::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, destination.c_str(), RENAME_EXCHANGE) == 0) {
    return true;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return false;
  throw IoError(fmt::format("put in the place of '{}'", destination.string()), folder, errno);
}

void replace_in_two_steps(const fs::path& folder, const fs::path& destination) {
  const fs::path old = fs::path(destination).concat(fmt::format("{}{}", kReplacedMark, ::getpid()));
  remove_path(old);
  rename_path(destination, old);
  try {
    rename_path(folder, destination);
  } catch (...) {
    rename_path(old, destination);
    throw;
  }
  // A power cut must find one of them whole.
  sync_folder(destination.parent_path());
  remove_path(old);
}

}  // namespace phalanx
