// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "trainer/tokenizers/normalizers/normalizer.h"

namespace phalanx {

/// The normalizer that a tokenizer.json describes; nothing of null. Throws UserError for one that
/// is unknown, and nlohmann::json::exception for one that lacks something.
std::shared_ptr<const Normalizer> read_normalizer(const nlohmann::json& value);

}  // namespace phalanx
