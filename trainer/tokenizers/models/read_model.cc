// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/read_model.h"

#include "trainer/tokenizers/models/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;

// Old files of BPE and WordPiece do not name their model.
std::string model_type(const json& object) {
  if (object.contains("type")) return type_of(object);
  return object.contains("merges") ? "BPE" : "WordPiece";
}

}  // namespace

std::shared_ptr<const Model> read_model(const json& object, const ModelContext& context) {
  const std::string type = model_type(object);
  if (type == "BPE") return models::read_bpe(object, context);
  if (type == "Unigram") return models::read_unigram(object, context);
  if (type == "WordLevel") return models::read_word_level(object, context);
  if (type == "WordPiece") return models::read_word_piece(object, context);
  refuse_part("the model " + type);
}

}  // namespace phalanx
