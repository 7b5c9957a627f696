// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "trainer/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace phalanx {

/// The pre-tokenizer that a tokenizer.json describes; nothing of null. Throws UserError for one
/// that is unknown, and nlohmann::json::exception for one that lacks something.
std::shared_ptr<const PreTokenizer> read_pre_tokenizer(const nlohmann::json& value);

}  // namespace phalanx
