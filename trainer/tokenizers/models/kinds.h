// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "trainer/tokenizers/models/read_model.h"

namespace phalanx::models {

using Made = std::shared_ptr<const Model>;

/// Each kind of model, from its object in a tokenizer.json; each in files of its own.
Made read_bpe(const nlohmann::json& object, const ModelContext& context);
Made read_unigram(const nlohmann::json& object, const ModelContext& context);
Made read_word_level(const nlohmann::json& object, const ModelContext& context);
Made read_word_piece(const nlohmann::json& object, const ModelContext& context);

}  // namespace phalanx::models
