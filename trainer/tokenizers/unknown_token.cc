// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/unknown_token.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/tokenizers/sentencepiece_tokenizer.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;

// The unknown token of {"<unk>": 5}, or of a Unigram model: its unk_id in [["<unk>", 0.0]].
std::optional<UnknownToken> unknown_of_model(const json& model) {
  const json& vocabulary = member(model, "vocab");
  if (const json& place = member(model, "unk_id"); place.is_number_unsigned()) {
    const auto token = place.get<int32_t>();
    const std::string text = vocabulary.at(static_cast<std::size_t>(token)).at(0);
    return UnknownToken{.token = token, .text = text};
  }
  const json& text = member(model, "unk_token");
  if (!text.is_string() || !vocabulary.is_object()) return std::nullopt;
  const json& token = member(vocabulary, text.get<std::string>());
  if (!token.is_number()) return std::nullopt;
  return UnknownToken{.token = token.get<int32_t>(), .text = text.get<std::string>()};
}

}  // namespace

std::optional<UnknownToken> unknown_token(const LoadedTokenizer& loaded) {
  const Tokenizer* const tokenizer = loaded.tokenizer.get();
  if (const auto* model = dynamic_cast<const SentencePieceTokenizer*>(tokenizer)) {
    return UnknownToken{.token = model->unknown_token(), .text = "<unk>"};
  }
  if (loaded.format != "tokenizer.json") return std::nullopt;
  return unknown_of_model(member(json::parse(loaded.files.front().content), "model"));
}

}  // namespace phalanx
