// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "trainer/tokenizers/added_tokens.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The byte-level BPE that a tokenizer.json describes, without its added tokens, which are
/// `added`. Throws UserError for what is not there or broken.
std::shared_ptr<const Tokenizer> make_byte_level_bpe(const nlohmann::json& file,
                                                     std::vector<AddedToken> added,
                                                     std::optional<int32_t> end_of_text);

}  // namespace phalanx
