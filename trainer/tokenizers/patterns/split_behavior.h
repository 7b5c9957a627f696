// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <string>

namespace phalanx {

/// What becomes of the matches that cut a text.
enum class SplitBehavior { removed, isolated, contiguous, merged_with_previous, merged_with_next };

/// By its name in a tokenizer.json: "Removed", "MergedWithNext". Throws UserError.
SplitBehavior split_behavior_of(const std::string& name);

/// A part of a text: a match, perhaps empty, or what lies before, between or behind matches.
struct TextPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_match = false;
};

/// Calls `take` with each piece that parts, which follow each other, give: [begin, end), perhaps
/// empty. Parts come one by one; finish() gives what was held back.
class PartsToPieces {
 public:
  using Take = c10::function_ref<void(std::size_t begin, std::size_t end)>;

  PartsToPieces(SplitBehavior behavior, Take take) : behavior_(behavior), take_(take) {}

  void add(TextPart part);
  void finish();

 private:
  bool joins(const TextPart& part) const;

  const SplitBehavior behavior_;
  const Take take_;
  bool has_piece_ = false;
  std::size_t begin_ = 0;  // Where the piece that may grow begins.
  std::size_t end_ = 0;
  bool last_is_match_ = false;
};

}  // namespace phalanx
