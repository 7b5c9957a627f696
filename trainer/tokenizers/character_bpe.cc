// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/character_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/unsupported_part.h"

namespace phalanx {
namespace {

constexpr std::string_view kSpace = "\u2581";
constexpr std::string_view kReplacement = "\uFFFD";

std::string byte_text(int byte) { return fmt::format("<0x{:02X}>", byte); }

// The byte that a token such as "<0x0A>" stands for.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const char* const end = token.data() + 5;
  if (std::from_chars(token.data() + 3, end, byte, 16).ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const size_t place = text.find(from);
    result += text.substr(0, place);
    if (place == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(place + from.size());
  }
}

// The bytes to the next "▁" behind the first character that is none: a word; with `each`, to the
// next one at all.
size_t word_length(std::string_view text, bool each) {
  size_t begin = 0;
  while (text.substr(begin).starts_with(kSpace)) {
    begin += kSpace.size();
    if (each) break;
  }
  return std::min(text.find(kSpace, begin), text.size());
}

}  // namespace

CharacterBpe::CharacterBpe(Parts parts)
    : parts_(std::move(parts)), added_(parts_.added), cuts_words_(may_cut()) {
  if (parts_.byte_fallback) {
    find_byte_tokens();
  } else if (!parts_.unknown) {
    throw UnsupportedPart(
        "a character that is no token would be lost: it needs byte_fallback or an unk_token");
  }
  find_whole_words();
}

void CharacterBpe::find_byte_tokens() {
  for (int byte = 0; byte < 256; ++byte) {
    const auto token = parts_.vocabulary.find(byte_text(byte));
    if (!token) {
      throw UnsupportedPart(fmt::format(
          "byte_fallback needs the token '{}', which the vocabulary lacks", byte_text(byte)));
    }
    byte_tokens_[byte] = *token;
  }
}

// Looks each token's own text up, so that most words need no merges.
void CharacterBpe::find_whole_words() {
  std::vector<int32_t> tokens;
  for (int32_t token = 0; token < parts_.vocabulary.size(); ++token) {
    const auto text = parts_.vocabulary.text_of(token);
    if (!text) continue;
    tokens.clear();
    encode_word(*text, tokens);
    if (tokens == std::vector{token}) whole_words_.emplace(*text, token);
  }
  if (!parts_.takes_whole_words) return;
  for (int32_t token = 0; token < parts_.vocabulary.size(); ++token) {
    if (const auto text = parts_.vocabulary.text_of(token)) whole_parts_.emplace(*text, token);
  }
  // Nobody ends a document by writing so.
  for (const AddedToken& added : parts_.added) {
    if (added.is_special) whole_parts_.erase(added.text);
  }
}

// Whether words can be encoded one by one: no token has "▁" behind another character, so no merge
// joins two words. (Where "▁" is unknown, a run of unknown characters may.)
bool CharacterBpe::may_cut() const {
  if (!parts_.vocabulary.find(kSpace)) return false;
  for (int32_t token = 0; token < parts_.vocabulary.size(); ++token) {
    const auto text = parts_.vocabulary.text_of(token);
    if (text && word_length(*text, /*each=*/false) != text->size()) return false;
  }
  return true;
}

void CharacterBpe::encode(std::string_view text, SpecialText special,
                          std::vector<int32_t>& tokens) const {
  if (well_formed_length(text) != text.size()) {
    encode(repaired_utf8(text), special, tokens);
    return;
  }
  size_t done = 0;
  while (const auto match = added_.find(text, done, special)) {
    encode_ordinary(text.substr(done, match->begin - done), done == 0, tokens);
    tokens.push_back(match->token);
    done = match->end;
  }
  encode_ordinary(text.substr(done), done == 0, tokens);
}

std::string CharacterBpe::normalized(std::string_view text, bool begins_text) const {
  std::string result = parts_.replaces_spaces ? replaced(text, " ", kSpace) : std::string(text);
  const bool is_there = result.starts_with(kSpace);
  if (parts_.prefix == Prefix::always || (parts_.prefix == Prefix::unless_there && !is_there) ||
      (parts_.prefix == Prefix::unless_there_first && !is_there && begins_text)) {
    result.insert(0, kSpace);
  }
  return result;
}

void CharacterBpe::encode_ordinary(std::string_view text, bool begins_text,
                                   std::vector<int32_t>& tokens) const {
  if (text.empty()) return;
  const std::string whole = normalized(text, begins_text);
  if (!parts_.splits_words) {
    encode_part(whole, tokens);
    return;
  }
  for (std::string_view left = whole; !left.empty();) {
    const size_t length = word_length(left, /*each=*/true);
    encode_part(left.substr(0, length), tokens);
    left.remove_prefix(length);
  }
}

void CharacterBpe::encode_part(std::string_view part, std::vector<int32_t>& tokens) const {
  const auto whole = whole_parts_.find(part);
  if (whole != whole_parts_.end()) {
    tokens.push_back(whole->second);
    return;
  }
  while (!part.empty()) {
    const size_t length = cuts_words_ ? word_length(part, /*each=*/false) : part.size();
    encode_word(part.substr(0, length), tokens);
    part.remove_prefix(length);
  }
}

void CharacterBpe::encode_word(std::string_view word, std::vector<int32_t>& tokens) const {
  const auto whole = whole_words_.find(word);
  if (whole != whole_words_.end()) {
    tokens.push_back(whole->second);
    return;
  }
  const size_t begin = tokens.size();
  append_characters(word, tokens);
  parts_.merges.apply(tokens, begin);
}

void CharacterBpe::append_characters(std::string_view word, std::vector<int32_t>& tokens) const {
  bool is_fused = false;  // The last token stands for unknown characters and takes more.
  while (!word.empty()) {
    // A text of the vocabulary that is no UTF-8 cannot be found: any bytes will do.
    const std::string_view character = word.substr(0, std::max<size_t>(character_length(word), 1));
    word.remove_prefix(character.size());
    const auto token = parts_.vocabulary.find(character);
    if (token) {
      tokens.push_back(*token);
    } else if (parts_.byte_fallback) {
      for (const char byte : character) {
        tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
      }
    } else if (!is_fused) {
      tokens.push_back(*parts_.unknown);
    }
    is_fused = !token && !parts_.byte_fallback && parts_.fuses_unknown;
  }
}

void CharacterBpe::append_bytes(int32_t token, DecodingState& state, std::string& bytes) const {
  std::optional<std::string_view> text = added_.text_of(token);
  if (!text) text = parts_.vocabulary.text_of(token);
  const auto byte = text && parts_.decoding.joins_bytes ? byte_of(*text) : std::nullopt;
  if (byte) {
    state.unfinished += *byte;
    return;
  }
  append_rest(state, bytes);
  const bool drops_spaces = parts_.decoding.drops_spaces_of_first_token && state.begins_text;
  const bool is_changed = parts_.decoding.shows_spaces && text;
  append_text(is_changed ? replaced(*text, kSpace, drops_spaces ? "" : " ")
                         : std::string(text.value_or(kReplacement)),
              state, bytes);
  if (parts_.decoding.drops_spaces_of_first_token) state.begins_text = false;
}

// A run of byte tokens is a text, or else each of them is U+FFFD: tokenizers does the same.
void CharacterBpe::append_rest(DecodingState& state, std::string& bytes) const {
  std::string run = std::exchange(state.unfinished, {});
  if (well_formed_length(run) == run.size()) {
    append_text(run, state, bytes);
    return;
  }
  for (size_t i = 0; i < run.size(); ++i) append_text(kReplacement, state, bytes);
}

void CharacterBpe::append_text(std::string_view text, DecodingState& state,
                               std::string& bytes) const {
  if (text.empty()) return;
  if (state.begins_text && parts_.decoding.drops_first_space && text.front() == ' ') {
    text.remove_prefix(1);
  }
  state.begins_text = false;
  bytes += text;
}

int32_t CharacterBpe::vocabulary_size() const {
  return std::max(parts_.vocabulary.size(), added_.size());
}

}  // namespace phalanx
