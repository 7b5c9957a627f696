// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// The file of transformers that says how a model writes texts, and where these end.
inline constexpr const char* kGenerationFile = "generation_config.json";

/// The tokens that end a text by such a file's content: its eos_token_id, one or several; none
/// where it names none. `place` is for messages. Throws UserError for what is no JSON object.
std::vector<int64_t> end_tokens(const std::string& content, const std::string& place);

/// The token that begins a text by such a file's content: its bos_token_id; nothing where it names
/// none. Throws as end_tokens.
std::optional<int64_t> start_token(const std::string& content, const std::string& place);

/// The content with `end` as its eos_token_id: as it is, byte for byte, where that is among its
/// own. Throws as end_tokens.
std::string with_end_token(const std::string& content, int64_t end, const std::string& place);

}  // namespace phalanx
