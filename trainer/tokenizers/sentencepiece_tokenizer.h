// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/added_tokens.h"
#include "trainer/tokenizers/tokenizer.h"

// The library's type, without its header.
namespace sentencepiece {
class SentencePieceProcessor;
}

namespace phalanx {

/// A model of SentencePiece (Kudo and Richardson, 2018), unigram or BPE, which its own library
/// encodes: T5's spiece.model, Llama 2's tokenizer.model. Decodes as SentencePieceProcessor does;
/// control tokens ("</s>") are no text.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// From a model file's content. Throws UserError for what is no such model, and for one that
  /// changes a decoded text by rules of its own (a denormalizer).
  explicit SentencePieceTokenizer(std::string_view model);
  ~SentencePieceTokenizer() override;

  /// A control token's text is found with SpecialText::token alone; what lies between two is
  /// encoded as a text of its own.
  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override;
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override;
  void append_rest(DecodingState& state, std::string& bytes) const override;
  int32_t vocabulary_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::optional<int32_t> end_of_text() const override { return end_of_text_; }
  /// Every model has one.
  int32_t unknown_token() const;

 private:
  // What a token gives when it is decoded.
  struct Piece {
    std::string text;  // With spaces; empty for a control token. A byte token's is that byte.
    bool is_byte = false;
    bool begins_with_space = false;  // One that may be left out at the beginning of a text.
  };

  void encode_ordinary(std::string_view text, std::vector<int32_t>& tokens) const;

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::vector<Piece> pieces_;
  AddedTokens controls_;
  std::optional<int32_t> end_of_text_;
  bool drops_first_space_ = false;  // From a decoded text.
  bool drops_first_spaces_ = false;
};

}  // namespace phalanx
