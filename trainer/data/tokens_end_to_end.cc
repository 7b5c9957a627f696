// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/tokens_end_to_end.h"

#include <algorithm>

namespace phalanx {

void TokensEndToEnd::read(int64_t begin, std::span<int64_t> out) const {
  while (!out.empty()) {
    const std::size_t part = parts_.part_at(begin);
    const auto left = static_cast<std::size_t>(parts_.end(part) - begin);
    const std::size_t count = std::min(left, out.size());
    with_part(part,
              [&](const TokenSet& set) { set.read(begin - parts_.begin(part), out.first(count)); });
    out = out.subspan(count);
    begin += static_cast<int64_t>(count);
  }
}

std::vector<DocumentBegin> TokensEndToEnd::document_begins(int64_t begin, int64_t end) const {
  std::vector<DocumentBegin> begins;
  for (int64_t place = begin; place < std::min(end, size());) {
    const std::size_t part = parts_.part_at(place);
    const int64_t first = parts_.begin(part);
    const int64_t last = std::min(end, parts_.end(part));
    with_part(part, [&](const TokenSet& set) {
      for (DocumentBegin document : set.document_begins(place - first, last - first)) {
        document.place += first;
        begins.push_back(document);
      }
    });
    place = last;
  }
  return begins;
}

std::string TokensEndToEnd::file_of(int64_t token) const {
  std::string file;
  const std::size_t part = parts_.part_at(token);
  with_part(part, [&](const TokenSet& set) { file = set.file_of(token - parts_.begin(part)); });
  return file;
}

std::string TokensEndToEnd::place_of(int64_t token) const {
  std::string place;
  const std::size_t part = parts_.part_at(token);
  with_part(part, [&](const TokenSet& set) { place = set.place_of(token - parts_.begin(part)); });
  return place;
}

}  // namespace phalanx
