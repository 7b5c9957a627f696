// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/shards.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 6;
constexpr uint64_t kMostFiles = 1'000'000;  // of so many digits

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
  if (fs::exists(pattern, ignored)) return fs::is_directory(pattern, ignored);
  return fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME | FNM_PERIOD | FNM_LEADING_DIR) == 0;
}

// How many files of a sequence there are as tokens.json says; 0 where nothing says it.
int described_files(const Shard& shard) {
  const fs::path before = shard.before;
  std::string name = before.filename().string();
  name.pop_back();
  try {
    const auto description = nlohmann::json::parse(read_text(before.parent_path() / "tokens.json"));
    const auto files = description.at("files").at(name).get<uint64_t>();
    return static_cast<int>(std::min<uint64_t>(files, kMostFiles));
  } catch (const std::exception&) {
    return 0;
  }
}

// The files of a sequence that are there.
struct Sequence {
  Shard shard;
  std::set<int> numbers;
};

}  // namespace

void require_all_shards(const std::string& field, const fs::path& pattern, const FileList& files) {
  std::map<std::string, Sequence> sequences;
  for (const fs::path file : files) {
    const std::optional<Shard> shard = shard_of(file);
    if (!shard) continue;
    Sequence& sequence = sequences[shard->before + shard->extension];
    sequence.shard = *shard;
    sequence.numbers.insert(shard->number);
  }
  for (const auto& [name, sequence] : sequences) {
    const int described = described_files(sequence.shard);
    const int first = described > 0 ? 0 : *sequence.numbers.begin();
    const int end = std::max(described, *sequence.numbers.rbegin());
    for (int number = first; number < end; ++number) {
      const fs::path missing = sequence.shard.path_of(number);
      if (sequence.numbers.contains(number) || !gives(pattern, missing)) continue;
      throw UserError(fmt::format(
          "{}: '{}' is missing, while '{}' is there: get it again, or list the files "
          "that are to be read one by one",
          field, missing.string(), sequence.shard.path_of(*sequence.numbers.rbegin()).string()));
    }
  }
}

}  // namespace phalanx
