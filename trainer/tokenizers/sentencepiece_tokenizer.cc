// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/sentencepiece_tokenizer.h"

#include <absl/base/log_severity.h>
#include <absl/log/globals.h>
#include <fmt/format.h>
#include <sentencepiece_model.pb.h>
#include <sentencepiece_processor.h>

#include <charconv>
#include <climits>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"

namespace phalanx {
namespace {

using sentencepiece::ModelProto;
using Type = ModelProto::SentencePiece;

constexpr std::string_view kSpace = "\u2581";
constexpr std::string_view kReplacement = "\uFFFD";

[[noreturn]] void refuse(const std::string& what) {
  throw UserError("it is no model of SentencePiece that can be used: " + what);
}

// What the library says, which the callers have no context to add to.
void require_ok(const absl::Status& status) {
  if (!status.ok()) refuse(single_line(std::string(status.message())));
}

ModelProto parse(std::string_view model) {
  ModelProto proto;
  if (model.size() > INT_MAX ||
      !proto.ParseFromArray(model.data(), static_cast<int>(model.size()))) {
    refuse("it is of another format, or cut off");
  }
  if (proto.pieces_size() == 0) refuse("it has no pieces");
  if (!proto.denormalizer_spec().precompiled_charsmap().empty()) {
    refuse("a denormalizer is not supported");
  }
  return proto;
}

std::vector<AddedToken> controls_of(const ModelProto& proto) {
  std::vector<AddedToken> controls;
  for (int token = 0; token < proto.pieces_size(); ++token) {
    const Type& piece = proto.pieces(token);
    if (piece.type() != Type::CONTROL) continue;
    controls.push_back({.token = token, .text = piece.piece(), .is_special = true});
  }
  return controls;
}

// "a▁b" as "a b".
std::string with_spaces(std::string_view piece) {
  std::string text;
  for (size_t place = 0; place < piece.size();) {
    const bool is_space = piece.substr(place).starts_with(kSpace);
    text += is_space ? ' ' : piece[place];
    place += is_space ? kSpace.size() : 1;
  }
  return text;
}

// The byte of a piece such as "<0x41>", a form that the library checks when it loads a model.
char byte_of(std::string_view piece) {
  unsigned byte = 0;
  std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return static_cast<char>(byte);
}

// Appends the characters of `unfinished` that are known: U+FFFD stands for each byte that cannot
// belong to one.
void append_characters(DecodingState& state, std::string& bytes) {
  std::string& unfinished = state.unfinished;
  while (unfinished_length(unfinished) != unfinished.size()) {
    const size_t length = character_length(unfinished);
    bytes += length == 0 ? kReplacement : std::string_view(unfinished).substr(0, length);
    unfinished.erase(0, length == 0 ? 1 : length);
    state.begins_text = false;
  }
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string_view model)
    : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()), controls_({}) {
  // Errors come as statuses: nothing is to be printed besides.
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
  const ModelProto proto = parse(model);
  require_ok(processor_->Load(proto));
  controls_ = AddedTokens(controls_of(proto));
  const auto& unknown = proto.trainer_spec().unk_surface();
  for (const Type& piece : proto.pieces()) {
    Piece& entry = pieces_.emplace_back();
    entry.is_byte = piece.type() == Type::BYTE;
    if (entry.is_byte) {
      entry.text = byte_of(piece.piece());
    } else if (piece.type() == Type::UNKNOWN) {
      entry.text = unknown;
    } else if (piece.type() != Type::CONTROL) {
      entry.text = with_spaces(piece.piece());
      entry.begins_with_space = piece.piece().starts_with(kSpace);
    }
  }
  if (processor_->eos_id() >= 0) end_of_text_ = processor_->eos_id();
  drops_first_spaces_ = proto.normalizer_spec().remove_extra_whitespaces();
  drops_first_space_ = proto.normalizer_spec().add_dummy_prefix() || drops_first_spaces_;
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

void SentencePieceTokenizer::encode(std::string_view text, SpecialText special,
                                    std::vector<int32_t>& tokens) const {
  if (well_formed_length(text) != text.size()) {
    encode(repaired_utf8(text), special, tokens);
    return;
  }
  size_t done = 0;
  while (const auto match = controls_.find(text, done, special)) {
    encode_ordinary(text.substr(done, match->begin - done), tokens);
    tokens.push_back(match->token);
    done = match->end;
  }
  encode_ordinary(text.substr(done), tokens);
}

void SentencePieceTokenizer::encode_ordinary(std::string_view text,
                                             std::vector<int32_t>& tokens) const {
  std::vector<int> found;
  const absl::Status status = processor_->Encode(text, &found);
  if (!status.ok()) {
    throw UserError(fmt::format("a text of {} bytes has no tokens: {}", text.size(),
                                single_line(std::string(status.message()))));
  }
  tokens.insert(tokens.end(), found.begin(), found.end());
}

void SentencePieceTokenizer::append_bytes(int32_t token, DecodingState& state,
                                          std::string& bytes) const {
  const bool is_known = token >= 0 && token < vocabulary_size();
  if (is_known && pieces_[token].is_byte) {
    state.unfinished += pieces_[token].text;
    append_characters(state, bytes);
    return;
  }
  append_rest(state, bytes);
  std::string_view text = is_known ? std::string_view(pieces_[token].text) : kReplacement;
  const bool drops_space =
      drops_first_space_ && state.begins_text && is_known && pieces_[token].begins_with_space;
  if (drops_space) text.remove_prefix(1);
  bytes += text;
  if (!text.empty() || (drops_space && !drops_first_spaces_)) state.begins_text = false;
}

void SentencePieceTokenizer::append_rest(DecodingState& state, std::string& bytes) const {
  for (; !state.unfinished.empty(); state.unfinished.pop_back()) {
    bytes += kReplacement;
    state.begins_text = false;
  }
}

int32_t SentencePieceTokenizer::unknown_token() const { return processor_->unk_id(); }

}  // namespace phalanx
