// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/new/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <string>
#include <system_error>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Stands in a folder until it is whole: one without it is somebody's own, whatever its name.
constexpr const char* kUnfinished = ".phalanx-unfinished";

bool is_unfinished(const fs::directory_entry& entry) {
  std::error_code unknown;
  return entry.is_directory(unknown) && !entry.is_symlink(unknown) &&
         fs::is_regular_file(fs::symlink_status(entry.path() / kUnfinished, unknown));
}

// What a command that was killed has left beside the place; one that is at work holds a lock.
void remove_leftovers(const fs::path& path) {
  const std::string prefix = path.filename().string() + ".tmp-";
  // A folder that cannot be listed can be written into all the same.
  std::error_code unknown;
  std::vector<fs::path> found;
  for (auto entry = fs::directory_iterator(path.parent_path(), unknown);
       entry != fs::directory_iterator(); entry.increment(unknown)) {
    const bool is_beside = entry->path().filename().string().starts_with(prefix);
    if (is_beside && is_unfinished(*entry)) found.push_back(entry->path());
  }
  for (const fs::path& folder : found) {
    try {
      if (File(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).try_lock()) remove_path(folder);
    } catch (const IoError&) {
      // Somebody else's: it costs space, and is not in the way.
    }
  }
}

// Its parent is there when this returns.
fs::path free_place(const fs::path& given) {
  fs::path path = fs::absolute(given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code unknown;
  const bool is_there = fs::exists(fs::symlink_status(path, unknown));
  const bool is_empty_folder =
      fs::is_directory(fs::symlink_status(path, unknown)) && fs::is_empty(path, unknown);
  if (is_there && !is_empty_folder) {
    throw UserError(
        fmt::format("'{}' is there already: name a new or an empty folder", given.string()));
  }
  create_folders(path.parent_path());
  remove_leftovers(path);
  if (fs::exists(fs::symlink_status(aside(path), unknown))) {
    throw UserError(
        fmt::format("'{}' is in the way: move it away, unless another command is writing it",
                    aside(path).string()));
  }
  return path;
}

}  // namespace

NewFolder::NewFolder(const fs::path& destination)
    : destination_(free_place(destination)), staged_(destination_) {
  const File mark(path() / kUnfinished, O_WRONLY | O_CREAT | O_EXCL);
}

void NewFolder::commit() {
  // Made durable with the mark, so that there is but an instant without.
  staged_.sync();
  remove_path(path() / kUnfinished);
  staged_.commit_as_new();
}

}  // namespace phalanx
