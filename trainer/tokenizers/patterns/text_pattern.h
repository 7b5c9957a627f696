// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "trainer/tokenizers/split_pattern.h"

namespace phalanx {

/// What a Split or Replace looks for: {"String": a text} or {"Regex": a pattern}. Thread-safe.
class TextPattern {
 public:
  /// Throws UserError and nlohmann::json::exception for what is none.
  explicit TextPattern(const nlohmann::json& pattern);

  /// Whether it can match where no character is.
  bool matches_nothing() const { return regex_ && regex_->matches_nothing(); }

  /// Calls take(begin, end) for each match in a well-formed text, one after the other.
  template <typename Take>
  void find_all(std::string_view text, const Take& take) const {
    size_t begin = 0;
    size_t end = 0;
    if (regex_) {
      SplitPattern::Matches matches(*regex_, text);
      while (matches.next(begin, end)) take(begin, end);
      return;
    }
    while ((begin = text.find(text_, end)) != std::string_view::npos) {
      end = begin + text_.size();
      take(begin, end);
    }
  }

 private:
  std::string text_;  // Looked for where no regex is.
  std::shared_ptr<const SplitPattern> regex_;
};

}  // namespace phalanx
