// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/composed_tokenizer.h"

#include <algorithm>
#include <utility>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/word_cuts.h"

namespace phalanx {
namespace {

// A character may become eighteen (U+FDFA), each with a sign for its bytes.
constexpr std::size_t kMostGrowth = 100;
constexpr std::size_t kShortText = 1000;

std::vector<AddedEntry> entries_of(const std::vector<AddedEntry>& entries, bool normalized) {
  std::vector<AddedEntry> found;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(found),
               [&](const AddedEntry& entry) { return entry.normalized == normalized; });
  return found;
}

}  // namespace

ComposedTokenizer::ComposedTokenizer(Parts parts)
    : parts_(std::move(parts)),
      raw_(entries_of(parts_.added, false)),
      normalized_(entries_of(parts_.added, true)) {
  for (const AddedEntry& entry : parts_.added) added_texts_.emplace(entry.token, entry.pattern);
  // An added token of the normalized text would have to be looked for there.
  const bool keeps_cuts =
      !parts_.normalizer || (parts_.normalizer->keeps_cuts() && normalized_.longest() == 0);
  cuts_behind_letters_ =
      keeps_cuts && parts_.pre_tokenizer && parts_.pre_tokenizer->cuts_behind_letters();
}

std::size_t ComposedTokenizer::last_cut(std::string_view text) const {
  // An added token may begin at the place or before it, and end behind it.
  const std::size_t margin = std::max(raw_.longest(), normalized_.longest());
  if (!cuts_behind_letters_ || text.size() <= margin) return 0;
  std::size_t place = text.size() - margin;
  do {
    place = cut_behind_letter(text, place, /*at_marks=*/true);
  } while (place > 0 && (raw_.touches(text, place) || normalized_.touches(text, place)));
  return place;
}

void ComposedTokenizer::encode(std::string_view text, SpecialText special,
                               std::vector<int32_t>& tokens) const {
  if (well_formed_length(text) != text.size()) {
    encode(repaired_utf8(text), special, tokens);
    return;
  }
  if (text.empty()) return;
  const TextPiece whole{.text = text, .at_start = unicode::character_at(text, 0).length};
  raw_.split(text, special, [&](std::size_t begin, std::size_t end, const AddedEntry* added) {
    if (added != nullptr) {
      tokens.push_back(added->token);
    } else {
      encode_ordinary(part_of(whole, begin, end), special, tokens);
    }
  });
}

void ComposedTokenizer::encode_ordinary(const TextPiece& piece, SpecialText special,
                                        std::vector<int32_t>& tokens) const {
  if (!parts_.normalizer) {
    encode_normalized(piece, special, tokens);
    return;
  }
  NormalizedText normalized{.text = std::string(piece.text),
                            .at_start = piece.at_start,
                            .most_bytes = kMostGrowth * (piece.text.size() + kShortText)};
  parts_.normalizer->apply(normalized);
  encode_normalized({.text = normalized.text, .at_start = normalized.at_start}, special, tokens);
}

void ComposedTokenizer::encode_normalized(const TextPiece& piece, SpecialText special,
                                          std::vector<int32_t>& tokens) const {
  const auto encode_piece = [&](const TextPiece& part) { parts_.model->encode(part.text, tokens); };
  normalized_.split(piece.text, special,
                    [&](std::size_t begin, std::size_t end, const AddedEntry* added) {
                      if (added != nullptr) {
                        tokens.push_back(added->token);
                      } else if (parts_.pre_tokenizer) {
                        parts_.pre_tokenizer->cut(part_of(piece, begin, end), encode_piece);
                      } else {
                        encode_piece(part_of(piece, begin, end));
                      }
                    });
}

// Gives a part to the decoder with this index, which gives its results to the next decoder.
void ComposedTokenizer::give(std::size_t decoder, const TokenPart& part, DecodingState& state,
                             std::string& bytes) const {
  if (decoder == parts_.decoders.size()) {
    bytes += part.text;
    return;
  }
  parts_.decoders[decoder]->take(part, state.decoders[decoder], [&](const TokenPart& made) {
    give(decoder + 1, made, state, bytes);
  });
}

void ComposedTokenizer::append_bytes(int32_t token, DecodingState& state,
                                     std::string& bytes) const {
  state.decoders.resize(parts_.decoders.size());
  const auto added = added_texts_.find(token);
  const std::string_view text = added != added_texts_.end()
                                    ? std::string_view(added->second)
                                    : parts_.model->text_of(token).value_or("\uFFFD");
  give(0, {.text = text}, state, bytes);
}

void ComposedTokenizer::append_rest(DecodingState& state, std::string& bytes) const {
  state.decoders.resize(parts_.decoders.size());
  for (std::size_t i = 0; i < parts_.decoders.size(); ++i) {
    parts_.decoders[i]->finish(state.decoders[i],
                               [&](const TokenPart& made) { give(i + 1, made, state, bytes); });
  }
}

int32_t ComposedTokenizer::vocabulary_size() const {
  int32_t size = parts_.model->size();
  for (const AddedEntry& entry : parts_.added) size = std::max(size, entry.token + 1);
  return size;
}

}  // namespace phalanx
