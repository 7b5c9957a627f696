// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// What the text of a special token, "<|endoftext|>" say, is when it stands in a text.
enum class SpecialText {
  ordinary,  ///< Text like any other: nobody ends a document by writing so.
  token,     ///< That token.
};

/// What one decoder of a chain keeps between two tokens.
struct DecoderState {
  bool has_begun = false;  ///< A token has come.
  std::string held;        ///< What waits for the next token.
  std::string parts;       ///< The parts of a token that comes part by part.
  std::size_t count = 0;
};

/// What decoding keeps between two tokens. Tokenizers change it, others only pass it on.
struct DecodingState {
  /// No text has come yet: a space that encoding put before the text is left out here.
  bool begins_text = true;
  std::string unfinished;  ///< Bytes that may become a character together with the next token's.
  std::vector<DecoderState> decoders;  ///< One for each decoder of a tokenizer that has several.
};

/// Text to tokens and back. Never changes, so every function is thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Appends the tokens of a text. What is no UTF-8 counts as U+FFFD (repaired_utf8), except where
  /// each byte is a token.
  virtual void encode(std::string_view text, SpecialText special,
                      std::vector<int32_t>& tokens) const = 0;

  /// Appends the bytes that the next token of a text stands for, perhaps a part of a character. A
  /// token that is not in the vocabulary gives U+FFFD: a model may have more tokens than its
  /// tokenizer.
  virtual void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const = 0;

  /// Appends what is left after the last token.
  virtual void append_rest(DecodingState& /*state*/, std::string& /*bytes*/) const {}

  /// Where a text can be cut that goes on behind `text`: the greatest known place where the tokens
  /// of both parts, one after the other, are those of the whole, whatever follows; special tokens
  /// count as ordinary text. 0: no such place is known.
  virtual std::size_t last_cut(std::string_view /*text*/) const { return 0; }

  /// One more than the largest token.
  virtual int32_t vocabulary_size() const = 0;

  /// The token between two documents; nothing where the tokenizer has none.
  virtual std::optional<int32_t> end_of_text() const = 0;
};

/// The tokens of a text.
std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialText special = SpecialText::ordinary);

/// The bytes of tokens, perhaps no UTF-8.
std::string decoded_bytes(const Tokenizer& tokenizer, std::span<const int32_t> tokens);

/// The text of tokens, as well-formed UTF-8 (repaired_utf8).
std::string decode(const Tokenizer& tokenizer, std::span<const int32_t> tokens);

}  // namespace phalanx
