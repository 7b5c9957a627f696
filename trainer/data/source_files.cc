// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/source_files.h"

#include <utility>

#include "trainer/data/concatenated_tokens.h"
#include "trainer/data/data_files.h"

namespace phalanx {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const std::string& field, const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    for (fs::path& file : find_data_files(field + ".files", path)) files.push_back(std::move(file));
  }
  return files;
}

std::shared_ptr<const TokenSet> open_files(
    const std::string& field, const std::vector<fs::path>& paths,
    const std::function<std::shared_ptr<const TokenSet>(std::shared_ptr<const MappedFile>)>& open) {
  std::vector<std::shared_ptr<const TokenSet>> parts;
  for (const fs::path& path : files_of(field, paths)) {
    auto file = std::make_shared<const MappedFile>(map_file(field + ".files", path));
    if (file->size() > 0) parts.push_back(open(std::move(file)));
  }
  return std::make_shared<ConcatenatedTokens>(std::move(parts));
}

}  // namespace phalanx
