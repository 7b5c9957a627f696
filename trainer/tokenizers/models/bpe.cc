// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/byte_alphabet.h"
#include "trainer/tokenizers/byte_tokens.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/merges.h"
#include "trainer/tokenizers/models/kinds.h"
#include "trainer/tokenizers/models/vocabulary_model.h"
#include "trainer/tokenizers/models/word_cache.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"
#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx::models {
namespace {

using nlohmann::json;

// What models made by SentencePiece put for a space.
constexpr std::string_view kSpace = "\u2581";

struct Options {
  std::optional<int32_t> unknown;
  bool fuses_unknown = false;  // A run of unknown characters is one token.
  bool byte_fallback = false;
  bool takes_whole_words = false;  // A piece that is a token, whatever the merges make of it.
  std::string prefix;              // Stands before each character but the first.
  std::string suffix;              // Stands behind the last character.
};

// The bytes to the next sign for a space behind the first character that is none.
std::size_t word_length(std::string_view text) {
  std::size_t begin = 0;
  while (text.substr(begin).starts_with(kSpace)) begin += kSpace.size();
  return std::min(text.find(kSpace, begin), text.size());
}

// Byte-pair encoding of characters (Sennrich et al., 2016).
class Bpe final : public VocabularyModel {
 public:
  Bpe(Vocabulary vocabulary, Merges merges, Options options, const ModelContext& context)
      : VocabularyModel(std::move(vocabulary)),
        merges_(std::move(merges)),
        options_(std::move(options)),
        hidden_(context.hidden),
        cuts_words_(may_cut()) {
    if (options_.byte_fallback) {
      bytes_ = ByteTokens([this](std::string_view text) { return token_of(text); });
    }
    if (!options_.unknown && !bytes_.is_whole()) check_bytes(context.is_byte_level);
  }

  void encode(std::string_view piece, std::vector<int32_t>& tokens) const override {
    if (options_.takes_whole_words && !hidden_.contains(piece)) {
      if (const auto whole = token_of(piece)) {
        tokens.push_back(*whole);
        return;
      }
    }
    while (!piece.empty()) {
      const std::size_t length = cuts_words_ ? word_length(piece) : piece.size();
      cache_.encode(piece.substr(0, length), tokens,
                    [this](std::string_view word, std::vector<int32_t>& found) {
                      const std::size_t begin = found.size();
                      append_characters(word, found);
                      merges_.apply(found, begin);
                    });
      piece.remove_prefix(length);
    }
  }

 private:
  // Without an unknown token each byte that UTF-8 has must be a token, by its visible character.
  void check_bytes(bool is_byte_level) const {
    if (!is_byte_level || !options_.prefix.empty() || !options_.suffix.empty()) {
      throw UserError(
          "a character that is no token would be lost: it needs byte_fallback, with all tokens of "
          "bytes, or an unk_token");
    }
    for (int byte = 0; byte <= 0xF4; ++byte) {
      const char c = static_cast<char>(byte);
      if (byte == 0xC0 || byte == 0xC1 || token_of(visible_bytes({&c, 1}))) continue;
      throw UserError(
          fmt::format("the byte 0x{:02x} is no token, so not every text has tokens", byte));
    }
  }

  // Whether words can be encoded one by one: no token has a sign for a space behind another
  // character, so no merge joins two words.
  bool may_cut() const {
    if (!token_of(kSpace) || !options_.prefix.empty() || !options_.suffix.empty()) return false;
    for (int32_t token = 0; token < size(); ++token) {
      const auto text = text_of(token);
      if (text && word_length(*text) != text->size()) return false;
    }
    return true;
  }

  // The token of a character of a word, with what is put before and behind it.
  std::optional<int32_t> find(std::string_view character, bool is_first, bool is_last) const {
    const bool has_prefix = !is_first && !options_.prefix.empty();
    const bool has_suffix = is_last && !options_.suffix.empty();
    if (!has_prefix && !has_suffix) return token_of(character);
    return token_of(written(character, is_first, is_last));
  }

  std::string written(std::string_view character, bool is_first, bool is_last) const {
    return fmt::format("{}{}{}", is_first ? "" : options_.prefix, character,
                       is_last ? options_.suffix : "");
  }

  void append_characters(std::string_view word, std::vector<int32_t>& tokens) const {
    bool is_waiting = false;  // The unknown token, which a known one or another brings out.
    const auto finish = [&] {
      if (is_waiting) tokens.push_back(*options_.unknown);
      is_waiting = false;
    };
    for (std::size_t place = 0; place < word.size();) {
      const std::size_t length = unicode::character_at(word, place).length;
      const std::string_view character = word.substr(place, length);
      const bool is_first = place == 0;
      place += length;
      const bool is_last = place >= word.size();
      if (const auto token = find(character, is_first, is_last)) {
        finish();
        tokens.push_back(*token);
      } else if (options_.byte_fallback &&
                 bytes_.append(written(character, is_first, is_last), tokens)) {
        // An unknown token that waits comes behind these, as in the package.
      } else if (options_.unknown) {
        if (!options_.fuses_unknown) finish();
        is_waiting = true;
      }
    }
    finish();
  }

  Merges merges_;
  Options options_;
  std::set<std::string, std::less<>> hidden_;
  bool cuts_words_;
  ByteTokens bytes_;
  WordCache cache_;
};

int32_t token_for_merge(const Vocabulary& vocabulary, const std::string& text) {
  if (const auto token = vocabulary.find(text)) return *token;
  throw std::invalid_argument(
      fmt::format("the merges need the token '{}', which the vocabulary lacks", text));
}

Merges make_merges(const MergeList& list, const Vocabulary& vocabulary, const std::string& prefix) {
  Merges merges;
  for (const auto& [left, right] : list) {
    if (right.size() < prefix.size()) {
      throw std::invalid_argument(
          fmt::format("the merge '{} {}' lacks the continuing_subword_prefix", left, right));
    }
    merges.add(token_for_merge(vocabulary, left), token_for_merge(vocabulary, right),
               token_for_merge(vocabulary, left + right.substr(prefix.size())));
  }
  return merges;
}

std::string text_option(const json& object, const char* name) {
  return is_set(object, name) ? object.at(name).get<std::string>() : std::string();
}

}  // namespace

Made read_bpe(const json& object, const ModelContext& context) {
  if (is_set(object, "dropout")) refuse_part("the option dropout of the model BPE");
  Vocabulary vocabulary(read_vocabulary(object.at("vocab")));
  Options options{.unknown = {},
                  .fuses_unknown = is_set(object, "fuse_unk"),
                  .byte_fallback = is_set(object, "byte_fallback"),
                  .takes_whole_words = is_set(object, "ignore_merges"),
                  .prefix = text_option(object, "continuing_subword_prefix"),
                  .suffix = text_option(object, "end_of_word_suffix")};
  // Bytes are never unknown: files of byte-level BPE may name a token that they lack.
  const std::string unknown = text_option(object, "unk_token");
  if (!unknown.empty()) {
    options.unknown = vocabulary.find(unknown);
    if (!options.unknown && !context.is_byte_level) unknown_token(vocabulary, unknown);
  }
  Merges merges = make_merges(read_merges(object.at("merges")), vocabulary, options.prefix);
  return std::make_shared<Bpe>(std::move(vocabulary), std::move(merges), std::move(options),
                               context);
}

}  // namespace phalanx::models
