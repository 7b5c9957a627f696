// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/compose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/parse.h"

namespace phalanx::config {

namespace {

namespace fs = std::filesystem;

constexpr const char* kInclude = "include";
// Files that each include two others would otherwise be read 2^64 times.
constexpr int kMaxFiles = 256;

class Composer {
 public:
  explicit Composer(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  Node compose(const fs::path& file) {
    ++files_;
    chain_.push_back(file);
    Node own = read_once(file);
    Node composed = Node::map();
    composed.origin = own.origin;
    if (const Node* include = own.find(kInclude)) {
      for (const Node& name : names_in(*include)) lay_included(composed, name);
      std::erase_if(own.entries, [](const Entry& entry) { return entry.key == kInclude; });
    }
    merge(composed, std::move(own));
    chain_.pop_back();
    return composed;
  }

 private:
  /// A file that is read twice, by whatever names, has each of its mistakes once.
  Node read_once(const fs::path& file) {
    std::error_code error;
    const fs::path itself = fs::weakly_canonical(file, error);
    const fs::path& key = error ? file : itself;
    if (const auto known = read_.find(key); known != read_.end()) return known->second;
    return read_.emplace(key, read_file(file, diagnostics_)).first->second;
  }

  std::vector<Node> names_in(const Node& include) {
    std::vector<Node> names = include.is_list() ? include.items : std::vector<Node>{include};
    for (const Node& name : names) {
      if (name.is_scalar() && !name.text.empty() && name.text.find("${") == std::string::npos) {
        continue;
      }
      const bool is_interpolation = name.text.find("${") != std::string::npos;
      diagnostics_.add(name.origin, kInclude,
                       is_interpolation
                           ? "${...} is not filled in here; write the file's path as it is"
                           : "expected the path of a config file, or a list of them, relative to "
                             "this file");
      return {};
    }
    return names;
  }

  void lay_included(Node& composed, const Node& name) {
    if (files_ >= kMaxFiles) {
      if (std::exchange(told_of_too_many_, true)) return;
      diagnostics_.add(name.origin, kInclude,
                       "more than " + std::to_string(kMaxFiles) + " files are included in all");
      return;
    }
    const fs::path file = path_of(name.text);
    if (const auto problem = problem_of(file)) {
      diagnostics_.add(name.origin, kInclude, *problem);
      return;
    }
    try {
      merge(composed, compose(file));
    } catch (const ConfigError& error) {
      throw ConfigError(with_includer(error.mistakes(), file, name.origin));
    }
  }

  /// Says of a file that is of no use at all, the last mistake, which one wanted it.
  static Diagnostics with_includer(const Diagnostics& mistakes, const fs::path& file,
                                   const Origin& include) {
    Diagnostics told;
    for (const Diagnostic& mistake : mistakes.all()) {
      const bool is_last = &mistake == &mistakes.all().back();
      const bool is_its_own =
          is_last && mistake.origin.source && mistake.origin.source->name == file;
      told.add(mistake.origin, mistake.path,
               mistake.message + (is_its_own ? " (included by " + include.text() + ")" : ""));
    }
    return told;
  }

  /// Without detours through "..", where no link makes them lead elsewhere.
  fs::path path_of(const std::string& name) const {
    const fs::path file = chain_.back().parent_path() / name;
    const fs::path direct = file.lexically_normal();
    std::error_code error;
    return fs::equivalent(file, direct, error) || !fs::exists(file, error) ? direct : file;
  }

  std::optional<std::string> problem_of(const fs::path& file) const {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() == fs::file_type::not_found) {
      return "there is no file '" + file.string() + "'";
    }
    if (!fs::exists(status)) return "'" + file.string() + "' cannot be read: " + error.message();
    if (fs::is_directory(status)) return "'" + file.string() + "' is a folder; name a file in it";
    const auto first = std::find_if(chain_.begin(), chain_.end(), [&](const fs::path& above) {
      return fs::equivalent(above, file, error);
    });
    if (first != chain_.end()) {
      std::string cycle;
      for (auto above = first; above != chain_.end(); ++above) {
        cycle += above->string() + " includes ";
      }
      return "this goes in a circle: " + cycle + file.string();
    }
    return std::nullopt;
  }

  Diagnostics& diagnostics_;
  std::vector<fs::path> chain_;  ///< The file that is being read and those that include it.
  std::map<fs::path, Node> read_;
  int files_ = 0;
  bool told_of_too_many_ = false;
};

}  // namespace

Node read_files(std::span<const fs::path> files, Diagnostics& diagnostics) {
  Composer composer(diagnostics);
  std::optional<Node> whole;
  for (const fs::path& file : files) {
    Node next = composer.compose(file);
    if (whole) {
      merge(*whole, std::move(next));
    } else {
      whole = std::move(next);
    }
  }
  return whole ? std::move(*whole) : Node::map();
}

}  // namespace phalanx::config
