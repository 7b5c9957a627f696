#include "trainer/commands/new_folder.h"

#include <fmt/format.h>

#include "trainer/config/user_error.h"
#include "trainer/core/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

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
  return path;
}

}  // namespace

NewFolder::NewFolder(const fs::path& destination)
    : destination_(free_place(destination)), staged_(destination_) {}

}  // namespace phalanx
