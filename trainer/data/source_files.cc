// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/source_files.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/data/data_file.h"
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

FileList files_of(const std::string& field, const std::vector<fs::path>& paths) {
  FileList files;
  for (const fs::path& path : paths) {
    refuse_output_of_tokenize(field, path);
    const FileList found = find_data_files(field, path);
    require_all_shards(field, path, found);
    files.add(found);
  }
  return files;
}

std::shared_ptr<const TokenSet> open_files(const std::string& field,
                                           const std::vector<fs::path>& paths,
                                           const LayoutOfFile& layout) {
  auto files = std::make_shared<const DataFiles>(field, files_of(field, paths));
  return std::make_shared<TokensOfFiles>(std::move(files), layout);
}

}  // namespace phalanx
