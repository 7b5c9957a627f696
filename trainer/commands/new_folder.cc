#include "trainer/commands/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <string>

#include "trainer/config/user_error.h"
#include "trainer/core/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// What a command that was killed has left beside the place; one that is at work holds a lock.
void remove_leftovers(const fs::path& path) {
  const std::string prefix = path.filename().string() + ".tmp-";
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    const std::string name = entry.path().filename().string();
    const bool is_of_ours =
        name.starts_with(prefix) && name.size() > prefix.size() &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (!is_of_ours || !entry.is_directory() || entry.is_symlink()) continue;
    if (File(entry.path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW).try_lock())
      remove_path(entry.path());
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
  return path;
}

}  // namespace

NewFolder::NewFolder(const fs::path& destination)
    : destination_(free_place(destination)), staged_(destination_) {}

}  // namespace phalanx
