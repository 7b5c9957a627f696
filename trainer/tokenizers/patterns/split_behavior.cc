// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/patterns/split_behavior.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {

SplitBehavior split_behavior_of(const std::string& name) {
  constexpr std::pair<const char*, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next}};
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  throw UserError(fmt::format("the behavior '{}' of a split is unknown", name));
}

// Whether a part becomes one piece with those before it.
bool PartsToPieces::joins(const TextPart& part) const {
  switch (behavior_) {
    case SplitBehavior::contiguous:
      return part.is_match == last_is_match_;
    case SplitBehavior::merged_with_previous:
      return part.is_match && !last_is_match_;
    case SplitBehavior::merged_with_next:
      return !part.is_match && last_is_match_;
    default:
      return false;
  }
}

void PartsToPieces::add(TextPart part) {
  if (behavior_ == SplitBehavior::isolated) {
    take_(part.begin, part.end);
    return;
  }
  if (behavior_ == SplitBehavior::removed) {
    if (!part.is_match) take_(part.begin, part.end);
    return;
  }
  if (has_piece_ && joins(part)) {
    end_ = part.end;
  } else {
    finish();
    has_piece_ = true;
    begin_ = part.begin;
    end_ = part.end;
  }
  last_is_match_ = part.is_match;
}

void PartsToPieces::finish() {
  if (has_piece_) take_(begin_, end_);
  has_piece_ = false;
}

}  // namespace phalanx
