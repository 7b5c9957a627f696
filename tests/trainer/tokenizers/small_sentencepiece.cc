// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/tokenizers/small_sentencepiece.h"

#include <fmt/format.h>

namespace phalanx {

sentencepiece::ModelProto small_model() {
  using Piece = sentencepiece::ModelProto::SentencePiece;
  sentencepiece::ModelProto model;
  const auto add = [&](const std::string& text, Piece::Type type) {
    auto& piece = *model.add_pieces();
    piece.set_piece(text);
    piece.set_type(type);
    piece.set_score(-1);
  };
  add("<unk>", Piece::UNKNOWN);
  add("<s>", Piece::CONTROL);
  add("</s>", Piece::CONTROL);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), Piece::BYTE);
  for (const char* text : {"\u2581", "a", "\u2581a", "\u2581ab"}) add(text, Piece::NORMAL);
  model.mutable_trainer_spec()->set_byte_fallback(true);
  return model;
}

}  // namespace phalanx
