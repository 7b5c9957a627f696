// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/models/byte_trie.h"
#include "trainer/tokenizers/models/kinds.h"
#include "trainer/tokenizers/models/vocabulary_model.h"
#include "trainer/tokenizers/models/word_cache.h"
#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx::models {
namespace {

using nlohmann::json;

// WordPiece (Schuster and Nakajima, 2012): the longest token that a word begins with, then the
// longest with a prefix that the rest begins with, and so on; or unknown.
class WordPiece final : public VocabularyModel {
 public:
  struct Options {
    int32_t unknown = 0;
    std::string prefix;
    std::size_t most_characters = 0;
  };

  WordPiece(Vocabulary vocabulary, Options options, const ModelContext& context)
      : VocabularyModel(std::move(vocabulary)), options_(std::move(options)) {
    std::vector<ByteTrie::Entry> first;
    std::vector<ByteTrie::Entry> later;
    for (int32_t token = 0; token < size(); ++token) {
      const auto text = text_of(token);
      if (!text || context.hidden.contains(*text)) continue;
      first.emplace_back(*text, token);
      if (text->starts_with(options_.prefix)) {
        later.emplace_back(text->substr(options_.prefix.size()), token);
      }
    }
    first_ = ByteTrie(std::move(first));
    later_ = ByteTrie(std::move(later));
  }

  void encode(std::string_view piece, std::vector<int32_t>& tokens) const override {
    cache_.encode(piece, tokens, [this](std::string_view word, std::vector<int32_t>& found) {
      encode_word(word, found);
    });
  }

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& tokens) const {
    const std::size_t begin = tokens.size();
    bool is_known = unicode::count_characters(word) <= options_.most_characters;
    for (std::size_t place = 0; is_known && place < word.size();) {
      std::size_t longest = 0;
      int32_t token = 0;
      (place == 0 ? first_ : later_)
          .find_prefixes(word.substr(place), [&](std::size_t length, int32_t number) {
            longest = length;
            token = number;
          });
      is_known = longest > 0;
      tokens.push_back(token);
      place += longest;
    }
    if (is_known) return;
    tokens.resize(begin);
    tokens.push_back(options_.unknown);
  }

  Options options_;
  ByteTrie first_;
  ByteTrie later_;  // Without the prefix.
  WordCache cache_;
};

}  // namespace

Made read_word_piece(const json& object, const ModelContext& context) {
  Vocabulary vocabulary(read_vocabulary(object.at("vocab")));
  WordPiece::Options options{
      .unknown = unknown_token(vocabulary, object.at("unk_token").get<std::string>()),
      .prefix = object.at("continuing_subword_prefix").get<std::string>(),
      .most_characters = count_in(object.at("max_input_chars_per_word"))};
  return std::make_shared<WordPiece>(std::move(vocabulary), std::move(options), context);
}

}  // namespace phalanx::models
