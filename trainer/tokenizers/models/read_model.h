// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "trainer/tokenizers/models/model.h"

namespace phalanx {

/// What else of a tokenizer.json a model is made with.
struct ModelContext {
  /// Texts that give no token where they stand in a text: those of special tokens, for nobody ends
  /// a document by writing so.
  std::set<std::string, std::less<>> hidden;
  /// All pieces are of the visible characters of bytes (byte_alphabet.h).
  bool is_byte_level = false;
};

/// The model that a tokenizer.json describes. Throws UserError for one that is unknown or would
/// lose a part of a text, and nlohmann::json::exception and std::invalid_argument for one that
/// lacks something.
std::shared_ptr<const Model> read_model(const nlohmann::json& object, const ModelContext& context);

}  // namespace phalanx
