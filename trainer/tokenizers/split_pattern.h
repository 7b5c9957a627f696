// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

// PCRE2's types, without its header.
struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace phalanx {

/// A regular expression that cuts a text into words, as the pre-tokenizers of GPT-2 and Llama 3 do.
/// Its syntax is PCRE2's, which holds what such patterns use of Python's regex and Rust's
/// fancy-regex; `\s` means Unicode's White_Space, as there. Thread-safe.
class SplitPattern {
 public:
  /// Throws UserError for what is no pattern, with the place of the mistake.
  explicit SplitPattern(const std::string& pattern);

  /// A part of a text: a match, or what lies between two.
  struct Piece {
    std::string_view text;
    bool is_match = false;
  };

  /// The pieces of one text, one after the other; together they are the text.
  class Pieces {
   public:
    /// `text` must be well-formed UTF-8; it and the pattern must live longer than this.
    Pieces(const SplitPattern& pattern, std::string_view text);

    /// The next piece, never empty; false after the last. Throws std::runtime_error where PCRE2
    /// gives up (out of memory for backtracking).
    bool next(Piece& piece);

   private:
    struct Free {
      void operator()(pcre2_real_match_data_8* data) const;
    };

    void find_match();

    const SplitPattern& pattern_;
    const std::string_view text_;
    const std::unique_ptr<pcre2_real_match_data_8, Free> data_;
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
};

}  // namespace phalanx
