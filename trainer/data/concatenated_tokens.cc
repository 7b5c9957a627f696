// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/concatenated_tokens.h"

#include <algorithm>
#include <utility>

namespace phalanx {

ConcatenatedTokens::ConcatenatedTokens(std::vector<std::shared_ptr<const TokenSet>> parts)
    : parts_(std::move(parts)) {
  std::erase_if(parts_, [](const auto& part) { return part->size() == 0; });
  int64_t end = 0;
  for (const auto& part : parts_) ends_.push_back(end += part->size());
}

size_t ConcatenatedTokens::part_of(int64_t token) const {
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), token) - ends_.begin());
}

void ConcatenatedTokens::read(int64_t begin, std::span<int64_t> out) const {
  for (size_t part = part_of(begin); !out.empty(); ++part) {
    const int64_t left = ends_.at(part) - begin;
    const size_t count = std::min(static_cast<size_t>(left), out.size());
    parts_[part]->read(begin - begin_of(part), out.first(count));
    out = out.subspan(count);
    begin += static_cast<int64_t>(count);
  }
}

std::vector<DocumentBegin> ConcatenatedTokens::document_begins(int64_t begin, int64_t end) const {
  std::vector<DocumentBegin> begins;
  for (size_t part = part_of(begin); part < parts_.size() && begin_of(part) < end; ++part) {
    const int64_t first = begin_of(part);
    const int64_t last = std::min(end, ends_[part]);
    for (DocumentBegin document :
         parts_[part]->document_begins(std::max(begin, first) - first, last - first)) {
      document.place += first;
      begins.push_back(document);
    }
  }
  return begins;
}

std::string ConcatenatedTokens::file_of(int64_t token) const {
  const size_t part = part_of(token);
  return parts_.at(part)->file_of(token - begin_of(part));
}

std::string ConcatenatedTokens::place_of(int64_t token) const {
  const size_t part = part_of(token);
  return parts_.at(part)->place_of(token - begin_of(part));
}

std::string_view ConcatenatedTokens::element() const {
  const bool are_bytes = std::all_of(parts_.begin(), parts_.end(),
                                     [](const auto& part) { return part->element() == "bytes"; });
  return are_bytes ? "bytes" : "tokens";
}

}  // namespace phalanx
