// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/shards.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 6;

// A file's path, cut at its number.
struct Shard {
  std::string before;
  int number = 0;
  std::string extension;

  fs::path path_of(int other) const {
    return fmt::format("{}{:0{}}{}", before, other, kDigits, extension);
  }
};

std::optional<Shard> shard_of(const fs::path& file) {
  Shard shard{.before = (file.parent_path() / file.stem()).string(),
              .extension = file.extension().string()};
  if (shard.extension != ".bin" && shard.extension != ".idx") return std::nullopt;
  const size_t name = file.stem().native().size();
  if (name <= kDigits) return std::nullopt;
  const std::string digits = shard.before.substr(shard.before.size() - kDigits);
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  shard.number = std::atoi(digits.c_str());
  shard.before.resize(shard.before.size() - kDigits);
  if (shard.before.back() != '_') return std::nullopt;
  return shard;
}

// Whether a folder or pattern would give a file, too, if it was there.
bool gives(const fs::path& pattern, const fs::path& file) {
  std::error_code ignored;
  if (fs::exists(pattern, ignored)) return true;
  return fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME | FNM_PERIOD | FNM_LEADING_DIR) == 0;
}

}  // namespace

void require_all_shards(const std::string& field, const fs::path& pattern,
                        const std::vector<fs::path>& files) {
  std::map<std::string, int> newest;  // The last number of each sequence.
  for (const fs::path& file : files) {
    const std::optional<Shard> shard = shard_of(file);
    if (!shard) continue;
    const auto [last, is_first] = newest.try_emplace(shard->before + shard->extension, 0);
    for (int number = last->second + 1; !is_first && number < shard->number; ++number) {
      const fs::path missing = shard->path_of(number);
      if (!gives(pattern, missing)) continue;
      throw UserError(
          fmt::format("{}: '{}' is missing, while '{}' is there: get it again, or list the files "
                      "that are to be read one by one",
                      field, missing.string(), file.string()));
    }
    last->second = shard->number;
  }
}

}  // namespace phalanx
