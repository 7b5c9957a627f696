// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_range.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace phalanx {

TokenRange::TokenRange(std::shared_ptr<const TokenSet> whole, int64_t begin, int64_t end)
    : whole_(std::move(whole)), begin_(begin), end_(end) {
  if (begin_ >= 0 && begin_ <= end_ && end_ <= whole_->size()) return;
  throw std::invalid_argument(
      fmt::format("[{}, {}) is no part of {} tokens", begin_, end_, whole_->size()));
}

std::vector<DocumentBegin> TokenRange::document_begins(int64_t begin, int64_t end) const {
  auto begins = whole_->document_begins(begin_ + begin, begin_ + end);
  for (DocumentBegin& document : begins) document.place -= begin_;
  return begins;
}

}  // namespace phalanx
