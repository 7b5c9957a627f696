// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/vocabulary.h"

namespace phalanx {

/// The number of a token in JSON. Throws std::invalid_argument where it is none.
int32_t token_number(const nlohmann::json& value);

/// A count in JSON. Throws std::invalid_argument for what is no whole number of 0 or more.
std::size_t count_in(const nlohmann::json& value);

/// An object of texts and tokens. Throws std::invalid_argument and nlohmann::json::exception.
std::vector<Vocabulary::Entry> read_vocabulary(const nlohmann::json& object);

/// The object that a JSON file holds. Throws UserError where it holds none.
nlohmann::json parse_json_object(std::string_view text);

}  // namespace phalanx
