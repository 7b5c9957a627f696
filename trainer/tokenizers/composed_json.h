// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The tokenizer that a tokenizer.json describes, of any parts. Throws UserError, saying which, for
/// a part that is not supported and for one that is broken.
std::shared_ptr<const Tokenizer> make_composed(const nlohmann::json& file,
                                               std::optional<int32_t> end_of_text);

}  // namespace phalanx
