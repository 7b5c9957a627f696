// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/tokenizers/added_vocabulary.h"
#include "trainer/tokenizers/decoders/decoder.h"
#include "trainer/tokenizers/models/model.h"
#include "trainer/tokenizers/normalizers/normalizer.h"
#include "trainer/tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// A tokenizer of the parts that a tokenizer.json names: added tokens are found, the text between
/// them is normalized, cut into pieces and given to a model; decoders make a text of tokens again.
/// The tokens and texts are those of the package tokenizers, but that a model gives no special
/// token for ordinary text.
class ComposedTokenizer final : public Tokenizer {
 public:
  struct Parts {
    std::shared_ptr<const Normalizer> normalizer;       ///< Perhaps none.
    std::shared_ptr<const PreTokenizer> pre_tokenizer;  ///< Perhaps none.
    std::shared_ptr<const Model> model;
    std::vector<std::shared_ptr<const Decoder>> decoders;
    std::vector<AddedEntry> added;
    std::optional<int32_t> end_of_text;
  };

  explicit ComposedTokenizer(Parts parts);

  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override;
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override;
  void append_rest(DecodingState& state, std::string& bytes) const override;
  std::size_t last_cut(std::string_view text) const override;
  int32_t vocabulary_size() const override;
  std::optional<int32_t> end_of_text() const override { return parts_.end_of_text; }

 private:
  void encode_ordinary(const TextPiece& piece, SpecialText special,
                       std::vector<int32_t>& tokens) const;
  void encode_normalized(const TextPiece& piece, SpecialText special,
                         std::vector<int32_t>& tokens) const;
  void give(std::size_t decoder, const TokenPart& part, DecodingState& state,
            std::string& bytes) const;

  Parts parts_;
  AddedVocabulary raw_;         // Found in the text as it is.
  AddedVocabulary normalized_;  // Found in the normalized text.
  bool cuts_behind_letters_;
  std::unordered_map<int32_t, std::string> added_texts_;
};

}  // namespace phalanx
