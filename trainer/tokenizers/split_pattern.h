// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// PCRE2's type, without its header.
struct pcre2_real_code_8;

namespace phalanx {

/// A regular expression that finds parts of a text, as the pre-tokenizers of GPT-2 and Llama 3 do
/// to cut it into words. It means what Oniguruma takes it for, as the package tokenizers does
/// (patterns/oniguruma.h), and PCRE2 runs it. Thread-safe.
class SplitPattern {
 public:
  /// Throws UserError for what is no pattern, with the place of the mistake.
  explicit SplitPattern(const std::string& pattern);

  /// Whether it can match where no character is.
  bool matches_nothing() const { return matches_nothing_; }

  /// The matches in one text, one after the other.
  class Matches {
   public:
    /// `text` must be well-formed UTF-8; it and the pattern must live longer than this.
    Matches(const SplitPattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}

    /// The next match, perhaps empty; false after the last. Throws std::runtime_error where PCRE2
    /// gives up (out of memory for backtracking).
    bool next(size_t& begin, size_t& end);

   private:
    bool search(size_t& begin, size_t& end) const;

    const SplitPattern& pattern_;
    const std::string_view text_;
    size_t from_ = 0;
    std::optional<size_t> last_end_;
  };

  /// A part of a text: a match, or what lies between two.
  struct Piece {
    std::string_view text;
    bool is_match = false;
  };

  /// The pieces of one text, one after the other; together they are the text.
  class Pieces {
   public:
    /// As Matches.
    Pieces(const SplitPattern& pattern, std::string_view text)
        : matches_(pattern, text), text_(text) {}

    /// The next piece, never empty; false after the last.
    bool next(Piece& piece);

   private:
    Matches matches_;
    const std::string_view text_;
    size_t done_ = 0;
    size_t match_begin_ = 0;
    size_t match_end_ = 0;
  };

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };

  std::unique_ptr<pcre2_real_code_8, Free> code_;
  bool is_compiled_ = false;  // To machine code.
  bool matches_nothing_ = false;
};

}  // namespace phalanx
