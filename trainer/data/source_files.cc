// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/source_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/data/concatenated_tokens.h"
#include "trainer/data/data_files.h"
#include "trainer/data/shards.h"

namespace phalanx {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const std::string& field, const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
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
