// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/added_tokens.h"
#include "trainer/tokenizers/gpt2_pattern.h"
#include "trainer/tokenizers/merges.h"
#include "trainer/tokenizers/split_pattern.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/vocabulary.h"

namespace phalanx {

/// How a pattern cuts a text.
struct Split {
  std::string pattern;
  bool drops_matches = false;
  bool drops_gaps = false;  ///< What lies between the matches.
};

/// Byte-pair encoding of bytes (Radford et al., 2019), as GPT-2 and Llama 3 have it: a pattern cuts
/// the text into words; in each word the merges join bytes, so that every text has tokens.
class ByteLevelBpe final : public Tokenizer {
 public:
  /// What the files of such a tokenizer hold.
  struct Parts {
    Vocabulary vocabulary;  ///< The bytes of each token; every single byte must be one.
    Merges merges;
    std::vector<AddedToken> added;
    std::vector<Split> splits;  ///< One after the other: each cuts what the one before it left.
    /// A word that is a token is that token, even where the merges would make others of it (Llama
    /// 3).
    bool takes_whole_words = false;
    bool adds_space = false;  ///< Before a text that does not begin with one.
    std::optional<int32_t> end_of_text;
  };

  /// Throws UserError for a pattern that PCRE2 does not know, and UnsupportedPart for a byte
  /// without a token.
  explicit ByteLevelBpe(Parts parts);

  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override;
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override;
  /// Knows places only where the one split is by a pattern of cuts_behind_letters.
  std::size_t last_cut(std::string_view text) const override;
  int32_t vocabulary_size() const override;
  std::optional<int32_t> end_of_text() const override { return parts_.end_of_text; }

  const Merges& merges() const { return parts_.merges; }

 private:
  void encode_ordinary(std::string_view text, std::vector<int32_t>& tokens) const;
  void encode_part(std::string_view text, size_t split, std::vector<int32_t>& tokens) const;
  void encode_word(std::string_view word, std::vector<int32_t>& tokens) const;
  void find_whole_words();
  bool added_token_spans(std::string_view text, std::size_t place) const;

  Parts parts_;
  AddedTokens added_;
  std::vector<SplitPattern> patterns_;  // The patterns of the splits.
  bool cuts_behind_letters_ = false;    // And so do they.
  std::array<int32_t, 256> byte_tokens_{};
  TokenOfText whole_words_;  // Words that become one token.
};

}  // namespace phalanx
