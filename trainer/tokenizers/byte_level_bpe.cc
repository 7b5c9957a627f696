// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/byte_level_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/unsupported_part.h"
#include "trainer/tokenizers/word_cuts.h"

namespace phalanx {

ByteLevelBpe::ByteLevelBpe(Parts parts) : parts_(std::move(parts)), added_(parts_.added) {
  for (const Split& split : parts_.splits) patterns_.emplace_back(split.pattern);
  cuts_behind_letters_ =
      parts_.splits.size() == 1 && cuts_behind_letters(parts_.splits.front().pattern);
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    const auto token = parts_.vocabulary.find({&character, 1});
    if (!token) {
      throw UnsupportedPart(
          fmt::format("the byte 0x{:02x} is no token, so not every text has tokens", byte));
    }
    byte_tokens_[byte] = *token;
  }
  find_whole_words();
}

// Looks each token's own bytes up, so that most words need no merges.
void ByteLevelBpe::find_whole_words() {
  std::vector<int32_t> tokens;
  for (int32_t token = 0; token < parts_.vocabulary.size(); ++token) {
    const auto text = parts_.vocabulary.text_of(token);
    if (!text) continue;
    tokens.clear();
    if (!parts_.takes_whole_words) {
      encode_word(*text, tokens);
      if (tokens.size() != 1) continue;
    }
    whole_words_.emplace(*text, token);
  }
}

void ByteLevelBpe::encode(std::string_view text, SpecialText special,
                          std::vector<int32_t>& tokens) const {
  if (well_formed_length(text) != text.size()) {
    encode(repaired_utf8(text), special, tokens);
    return;
  }
  size_t done = 0;
  while (const auto match = added_.find(text, done, special)) {
    encode_ordinary(text.substr(done, match->begin - done), tokens);
    tokens.push_back(match->token);
    done = match->end;
  }
  encode_ordinary(text.substr(done), tokens);
}

void ByteLevelBpe::encode_ordinary(std::string_view text, std::vector<int32_t>& tokens) const {
  if (text.empty()) return;
  std::string spaced;
  if (parts_.adds_space && text.front() != ' ') {
    spaced = fmt::format(" {}", text);
    text = spaced;
  }
  encode_part(text, 0, tokens);
}

// Cuts a text by the splits from number `split` on.
void ByteLevelBpe::encode_part(std::string_view text, size_t split,
                               std::vector<int32_t>& tokens) const {
  if (split == patterns_.size()) {
    encode_word(text, tokens);
    return;
  }
  const Split& rule = parts_.splits[split];
  SplitPattern::Pieces pieces(patterns_[split], text);
  SplitPattern::Piece piece;
  while (pieces.next(piece)) {
    if (piece.is_match ? rule.drops_matches : rule.drops_gaps) continue;
    encode_part(piece.text, split + 1, tokens);
  }
}

void ByteLevelBpe::encode_word(std::string_view word, std::vector<int32_t>& tokens) const {
  const auto whole = whole_words_.find(word);
  if (whole != whole_words_.end()) {
    tokens.push_back(whole->second);
    return;
  }
  const size_t begin = tokens.size();
  for (const char byte : word) tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  parts_.merges.apply(tokens, begin);
}

// A part that begins with a space gets none before it; others would.
std::size_t ByteLevelBpe::last_cut(std::string_view text) const {
  const std::size_t margin = added_.longest_ordinary();  // An added token may begin before its end.
  if (!cuts_behind_letters_ || text.size() <= margin) return 0;
  std::size_t place = text.size() - margin;
  do {
    place = cut_behind_letter(text, place, !parts_.adds_space);
  } while (place > 0 &&
           (added_token_spans(text, place) || (parts_.adds_space && text[place] != ' ')));
  return place;
}

bool ByteLevelBpe::added_token_spans(std::string_view text, std::size_t place) const {
  const std::size_t longest = added_.longest_ordinary();
  const std::string_view around = text.substr(0, place + longest);
  std::size_t from = place - std::min(place, longest);
  while (const auto match = added_.find(around, from, SpecialText::ordinary)) {
    if (match->begin >= place) return false;
    if (match->end > place) return true;
    from = match->begin + 1;
  }
  return false;
}

void ByteLevelBpe::append_bytes(int32_t token, DecodingState& /*state*/, std::string& bytes) const {
  if (const auto added = added_.text_of(token)) {
    bytes += *added;
  } else {
    bytes += parts_.vocabulary.text_of(token).value_or("\xEF\xBF\xBD");
  }
}

int32_t ByteLevelBpe::vocabulary_size() const {
  return std::max(parts_.vocabulary.size(), added_.size());
}

}  // namespace phalanx
