// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/tokens_of_files.h"

#include <algorithm>
#include <utility>

namespace phalanx {

TokensOfFiles::TokensOfFiles(std::shared_ptr<const DataFiles> files, const LayoutOfFile& layout)
    : files_(std::move(files)) {
  ends_.reserve(files_->count());
  layout_of_.reserve(files_->count());
  for (size_t file = 0; file < files_->count(); ++file) {
    const TokenLayout found = layout(DataFile(files_, file));
    const auto known = std::find(layouts_.begin(), layouts_.end(), found);
    layout_of_.push_back(static_cast<uint8_t>(known - layouts_.begin()));
    if (known == layouts_.end()) layouts_.push_back(found);
    const int64_t bytes = static_cast<int64_t>(files_->size(file)) - found.offset;
    ends_.push_back(size() + bytes / bytes_of(found.type));
  }
}

size_t TokensOfFiles::file_at(int64_t token) const {
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), token) - ends_.begin());
}

StoredTokens TokensOfFiles::tokens_of(size_t file) const {
  const TokenLayout& layout = layouts_[layout_of_[file]];
  return {DataFile(files_, file), layout.offset, ends_[file] - begin_of(file), layout.type,
          layout.ends};
}

void TokensOfFiles::read(int64_t begin, std::span<int64_t> out) const {
  for (size_t file = file_at(begin); !out.empty(); ++file) {
    const int64_t left = ends_.at(file) - begin;
    const size_t count = std::min(static_cast<size_t>(left), out.size());
    if (count == 0) continue;  // Of an empty file.
    tokens_of(file).read(begin - begin_of(file), out.first(count));
    out = out.subspan(count);
    begin += static_cast<int64_t>(count);
  }
}

std::vector<DocumentBegin> TokensOfFiles::document_begins(int64_t begin, int64_t end) const {
  std::vector<DocumentBegin> begins;
  for (size_t file = file_at(begin); file < ends_.size() && begin_of(file) < end; ++file) {
    const int64_t first = begin_of(file);
    const int64_t last = std::min(end, ends_[file]);
    if (first == last) continue;
    for (DocumentBegin document :
         tokens_of(file).document_begins(std::max(begin, first) - first, last - first)) {
      document.place += first;
      begins.push_back(document);
    }
  }
  return begins;
}

std::string TokensOfFiles::file_of(int64_t token) const {
  return files_->path(file_at(token)).string();
}

std::string TokensOfFiles::place_of(int64_t token) const {
  const size_t file = file_at(token);
  return tokens_of(file).place_of(token - begin_of(file));
}

std::string_view TokensOfFiles::element() const {
  const bool are_bytes = std::all_of(layouts_.begin(), layouts_.end(), [](const auto& layout) {
    return layout.type == TokenType::uint8;
  });
  return are_bytes ? "bytes" : "tokens";
}

}  // namespace phalanx
