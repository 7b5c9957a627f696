// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/concatenated_tokens.h"

#include <algorithm>
#include <utility>

namespace phalanx {

ConcatenatedTokens::ConcatenatedTokens(std::vector<std::shared_ptr<const TokenSet>> sets)
    : sets_(std::move(sets)) {
  std::erase_if(sets_, [](const auto& set) { return set->size() == 0; });
  for (const auto& set : sets_) parts_.add(set->size());
}

std::string_view ConcatenatedTokens::element() const {
  const bool are_bytes = std::all_of(sets_.begin(), sets_.end(),
                                     [](const auto& set) { return set->element() == "bytes"; });
  return are_bytes ? "bytes" : "tokens";
}

}  // namespace phalanx
