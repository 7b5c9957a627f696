// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "trainer/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace phalanx::pre_tokenizers {

using Made = std::shared_ptr<const PreTokenizer>;

/// Each kind of pre-tokenizer, from its object in a tokenizer.json; each in a file of its own.
Made read_bert(const nlohmann::json& object);
Made read_byte_level(const nlohmann::json& object);
Made read_delimiter(const nlohmann::json& object);
Made read_digits(const nlohmann::json& object);
Made read_fixed_length(const nlohmann::json& object);
Made read_metaspace(const nlohmann::json& object);
Made read_punctuation(const nlohmann::json& object);
Made read_sequence(const nlohmann::json& object);
Made read_split(const nlohmann::json& object);
Made read_unicode_scripts(const nlohmann::json& object);
Made read_whitespace(const nlohmann::json& object);
Made read_whitespace_split(const nlohmann::json& object);

}  // namespace phalanx::pre_tokenizers
