// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/source_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/data/concatenated_tokens.h"
#include "trainer/data/data_files.h"
#include "trainer/data/shards.h"

namespace phalanx {

namespace fs = std::filesystem;

namespace {

// Its tokens for training and for validation must not be one set.
void refuse_output_of_tokenize(const std::string& field, const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path / "tokens.json", ignored)) return;
  if (!fs::exists(path / "train_000000.bin", ignored)) return;
  throw UserError(fmt::format(
      "{}: '{}' was made by `trainer tokenize`: name its files for training, '{}', or those for "
      "validation, '{}'",
      field, path.string(), (path / "train_*.bin").string(), (path / "val_*.bin").string()));
}

}  // namespace

std::vector<fs::path> files_of(const std::string& field, const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    refuse_output_of_tokenize(field + ".files", path);
    std::vector<fs::path> found = find_data_files(field + ".files", path);
    require_all_shards(field + ".files", path, found);
    std::move(found.begin(), found.end(), std::back_inserter(files));
  }
  return files;
}

std::shared_ptr<const TokenSet> open_files(
    const std::string& field, const std::vector<fs::path>& paths,
    const std::function<std::shared_ptr<const TokenSet>(std::shared_ptr<const MappedFile>)>& open) {
  std::vector<std::shared_ptr<const TokenSet>> parts;
  for (const fs::path& path : files_of(field, paths)) {
    parts.push_back(open(std::make_shared<const MappedFile>(map_file(field + ".files", path))));
  }
  return std::make_shared<ConcatenatedTokens>(std::move(parts));
}

}  // namespace phalanx
