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
#include "trainer/tokenizers/merges.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/vocabulary.h"

namespace phalanx {

/// Byte-pair encoding of characters, as Llama 2's and Mistral's tokenizer.json describe what
/// SentencePiece made: "▁" stands for a space, and a character that is no token becomes tokens of
/// its bytes, or the unknown token. Encodes and decodes as the package tokenizers does.
class CharacterBpe final : public Tokenizer {
 public:
  /// Where a "▁" is put before a part of a text that lies between two added tokens.
  enum class Prefix {
    never,
    always,
    unless_there,        ///< Where it does not begin with one, or with a space.
    unless_there_first,  ///< The same, only where the text begins.
  };

  /// How tokens become a text.
  struct Decoding {
    bool shows_spaces = true;  ///< "▁" as a space.
    bool joins_bytes = false;  ///< "<0xC3>", "<0xA9>" as "é".
    bool drops_first_space = false;
    bool drops_spaces_of_first_token = false;  ///< All that its text has.
  };

  /// What the files of such a tokenizer hold.
  struct Parts {
    Vocabulary vocabulary;
    Merges merges;
    std::vector<AddedToken> added;
    std::optional<int32_t> unknown;
    bool fuses_unknown = false;      ///< A run of unknown characters is one token.
    bool byte_fallback = false;      ///< With the tokens "<0x00>" to "<0xFF>".
    bool takes_whole_words = false;  ///< As ByteLevelBpe does.
    bool replaces_spaces = false;    ///< By "▁".
    Prefix prefix = Prefix::never;
    bool splits_words = false;  ///< Before each "▁".
    Decoding decoding;
    std::optional<int32_t> end_of_text;
  };

  /// Throws UnsupportedPart where a byte has no token but byte_fallback asks for it, and where a
  /// character that is no token would be lost, having neither bytes nor an unknown token.
  explicit CharacterBpe(Parts parts);

  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override;
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override;
  void append_rest(DecodingState& state, std::string& bytes) const override;
  int32_t vocabulary_size() const override;
  std::optional<int32_t> end_of_text() const override { return parts_.end_of_text; }

  const Merges& merges() const { return parts_.merges; }

 private:
  std::string normalized(std::string_view text, bool begins_text) const;
  void encode_ordinary(std::string_view text, bool begins_text, std::vector<int32_t>& tokens) const;
  void encode_part(std::string_view part, std::vector<int32_t>& tokens) const;
  void encode_word(std::string_view word, std::vector<int32_t>& tokens) const;
  void append_characters(std::string_view word, std::vector<int32_t>& tokens) const;
  void append_text(std::string_view text, DecodingState& state, std::string& bytes) const;
  void find_byte_tokens();
  void find_whole_words();
  bool may_cut() const;

  Parts parts_;
  AddedTokens added_;
  bool cuts_words_ = false;                 // Where no merge joins what lies on both sides.
  std::array<int32_t, 256> byte_tokens_{};  // With byte_fallback.
  TokenOfText whole_parts_;                 // With takes_whole_words.
  TokenOfText whole_words_;                 // Words that become one token.
};

}  // namespace phalanx
