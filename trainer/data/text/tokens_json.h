// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trainer/data/text/token_writer.h"

namespace phalanx {

/// What tokens.json says of the files beside it.
struct TokensJson {
  TokenFileFormat format = TokenFileFormat::llmc;
  int64_t bytes_per_token = 2;  ///< 2 or 4.
  std::optional<int64_t> end_of_text;
  int64_t training_tokens = 0;  ///< In train_*.bin, those of end-of-text included.
  int64_t validation_tokens = 0;
  std::string tokenizer;                   ///< The format of its files, or "bytes".
  std::optional<int64_t> vocabulary_size;  ///< The size of the tokenizer's vocabulary.
};

NLOHMANN_JSON_SERIALIZE_ENUM(TokenFileFormat, {{TokenFileFormat::llmc, "llmc"},
                                               {TokenFileFormat::nanogpt, "nanogpt"},
                                               {TokenFileFormat::megatron, "megatron"}})

/// Whether a value is an integer that may count what a disk holds: 0 to 2^56.
bool is_count(const nlohmann::json& value);

/// Reads a tokens.json. Throws UserError where it is broken; IoError.
TokensJson read_tokens_json(const std::filesystem::path& path);

/// Whether a folder that `tokenize` made has all its training tokens still. Throws as
/// read_tokens_json.
bool has_all_training_tokens(const std::filesystem::path& folder);

}  // namespace phalanx
