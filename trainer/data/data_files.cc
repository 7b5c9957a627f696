// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/data_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

std::vector<fs::path> matches_of(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, &globfree);
  std::vector<fs::path> matches;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) != 0) return matches;
  for (size_t i = 0; i < found.gl_pathc; ++i) matches.emplace_back(found.gl_pathv[i]);
  return matches;
}

void add_folder(const std::string& field, const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const bool hidden = entry->path().filename().native().starts_with('.');
    if (hidden && entry->is_directory(error)) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file(error)) files.push_back(entry->path());
    error.clear();  // A link that leads nowhere is no file.
  }
  if (error) {
    throw UserError(field + ": cannot read the folder '" + folder.string() +
                    "': " + error.message());
  }
}

// Adds what a path without wildcards names.
void add_path(const std::string& field, const fs::path& path, std::vector<fs::path>& files) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    add_folder(field, path, files);
  } else if (status.type() == fs::file_type::not_found) {
    throw UserError(field + ": there is no file, folder or match for '" + path.string() + "'" +
                    (path.is_relative() ? " below '" + fs::current_path().string() + "'" : ""));
  } else if (error) {
    throw UserError(field + ": cannot look at '" + path.string() + "': " + error.message());
  } else if (!fs::is_regular_file(status)) {
    throw UserError(field + ": '" + path.string() + "' is neither a file nor a folder");
  } else {
    files.push_back(path);
  }
}

void keep_first_name_of_each(std::vector<fs::path>& files) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::erase_if(files, [&](const fs::path& file) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) return false;  // Opening it will say why.
    return !seen.emplace(status.st_dev, status.st_ino).second;
  });
}

}  // namespace

std::vector<fs::path> find_data_files(const std::string& field, const fs::path& path) {
  std::vector<fs::path> files;
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
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  keep_first_name_of_each(files);
  return files;
}

}  // namespace phalanx
