// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "trainer/tokenizers/decoders/decoder.h"

namespace phalanx {

/// The decoders that a tokenizer.json describes, one after the other; of null, one that puts spaces
/// between tokens. Throws UserError for one that is unknown, and nlohmann::json::exception for one
/// that lacks something.
std::vector<std::shared_ptr<const Decoder>> read_decoders(const nlohmann::json& value);

}  // namespace phalanx
