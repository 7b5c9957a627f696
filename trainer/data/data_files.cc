// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/data_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <tuple>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/data/many_files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

FileList matches_of(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, &globfree);
  FileList matches;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) != 0) return matches;
  for (size_t i = 0; i < found.gl_pathc; ++i) matches.add(found.gl_pathv[i]);
  return matches;
}

void add_folder(const std::string& field, const fs::path& folder, FileList& files) {
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const bool hidden = entry->path().filename().native().starts_with('.');
    if (hidden && entry->is_directory(error)) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file(error)) files.add(entry->path().native());
    error.clear();  // A link that leads nowhere is no file.
  }
  if (error) {
    throw UserError(field + ": cannot read the folder '" + folder.string() +
                    "': " + error.message());
  }
}

// Adds what a path without wildcards names.
void add_path(const std::string& field, const fs::path& path, FileList& files) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    look_for_files("finding files in " + path.string(), [&] { add_folder(field, path, files); });
  } else if (status.type() == fs::file_type::not_found) {
    throw UserError(field + ": there is no file, folder or match for '" + path.string() + "'" +
                    (path.is_relative() ? " below '" + fs::current_path().string() + "'" : ""));
  } else if (error) {
    throw UserError(field + ": cannot look at '" + path.string() + "': " + error.message());
  } else if (!fs::is_regular_file(status)) {
    throw UserError(field + ": '" + path.string() + "' is neither a file nor a folder");
  } else {
    files.add(path.native());
  }
}

// A file, and which of the names it is.
struct Named {
  dev_t device;
  ino_t inode;
  size_t name;

  bool operator<(const Named& other) const {
    return std::tie(device, inode, name) < std::tie(other.device, other.inode, other.name);
  }
  bool is_file_of(const Named& other) const {
    return device == other.device && inode == other.inode;
  }
};

void keep_first_name_of_each(FileList& files) {
  std::vector<Named> all;
  all.reserve(files.size());
  look_at_each("looking at data", files.size(), [&](size_t i) {
    struct stat status {};
    if (stat(files[i].c_str(), &status) != 0) return;  // Opening it will say why.
    all.push_back({status.st_dev, status.st_ino, i});
  });
  std::sort(all.begin(), all.end());
  std::vector<bool> is_first(files.size(), true);
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].is_file_of(all[i - 1])) is_first[all[i].name] = false;
  }
  files.keep_if(is_first);
}

}  // namespace

FileList find_data_files(const std::string& field, const fs::path& path) {
  FileList files;
  std::error_code ignored;
  if (is_pattern(path.native()) && !fs::exists(path, ignored)) {
    for (const auto& match : matches_of(path.native())) add_path(field, match, files);
  } else {
    add_path(field, path, files);
  }
  if (files.empty()) {
    throw UserError(field + ": '" + path.string() + "' " +
                    (fs::is_directory(path, ignored) ? "has no files in it" : "matches no file"));
  }
  files.sort();
  keep_first_name_of_each(files);
  return files;
}

}  // namespace phalanx
