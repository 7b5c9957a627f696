// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/tokens_of_files.h"

#include <algorithm>
#include <utility>

namespace phalanx {

TokensOfFiles::TokensOfFiles(std::shared_ptr<const DataFiles> files, const LayoutOfFile& layout)
    : files_(std::move(files)) {
  parts_.reserve(files_->count());
  layout_of_.reserve(files_->count());
  for (size_t file = 0; file < files_->count(); ++file) {
    const TokenLayout found = layout(DataFile(files_, file));
    const auto known = std::find(layouts_.begin(), layouts_.end(), found);
    layout_of_.push_back(static_cast<uint8_t>(known - layouts_.begin()));
    if (known == layouts_.end()) layouts_.push_back(found);
    const int64_t bytes = static_cast<int64_t>(files_->size(file)) - found.offset;
    parts_.add(bytes / bytes_of(found.type));
  }
}

void TokensOfFiles::with_part(size_t part, Use use) const {
  const TokenLayout& layout = layouts_.at(layout_of_.at(part));
  use(StoredTokens(DataFile(files_, part), layout.offset, parts_.length(part), layout.type,
                   layout.ends));
}

std::string_view TokensOfFiles::element() const {
  const bool are_bytes = std::all_of(layouts_.begin(), layouts_.end(), [](const auto& layout) {
    return layout.type == TokenType::uint8;
  });
  return are_bytes ? "bytes" : "tokens";
}

}  // namespace phalanx
