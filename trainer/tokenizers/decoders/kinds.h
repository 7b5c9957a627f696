// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "trainer/tokenizers/decoders/decoder.h"

namespace phalanx::decoders {

using Made = std::shared_ptr<const Decoder>;

/// Each kind of decoder, from its object in a tokenizer.json; each in a file of its own.
Made read_bpe(const nlohmann::json& object);
Made read_byte_fallback(const nlohmann::json& object);
Made read_byte_level(const nlohmann::json& object);
Made read_ctc(const nlohmann::json& object);
Made read_fuse(const nlohmann::json& object);
Made read_metaspace(const nlohmann::json& object);
Made read_replace(const nlohmann::json& object);
Made read_strip(const nlohmann::json& object);
Made read_word_piece(const nlohmann::json& object);

/// Puts a space between two tokens.
Made make_spaced();

}  // namespace phalanx::decoders
